// A fake CUDA driver in the test: devices, streams, events and graphs in the host's memory. It has
// its own clock, and an adversary picks the order of work.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/cuda/driver/driver.h"
#include "tests/support/fake_kernel.h"

namespace plumbline {

class FakeWorks;
struct FakeDemand;

struct FakeGpu {
  std::string name = "Fake H100";
  unsigned sms = 132;
  unsigned min_partition = 8;
  unsigned alignment = 8;
  unsigned stray = 0;  ///< The number of SMs that are in no group, whatever the split.
  std::size_t memory = std::size_t{1} << 30;  ///< Bytes.
};

struct FakeOptions {
  std::vector<FakeGpu> gpus{FakeGpu{}};
  bool peers = true;       ///< GPUs reach each other's memory.
  std::uint64_t seed = 1;  ///< The adversary's seed.
  std::uint64_t kernel_nanoseconds = 1000;
  std::uint64_t copy_nanoseconds = 500;  ///< Plus one per 64 bytes; for memset, too.
  std::uint64_t graph_nanoseconds = 0;   ///< The time of a graph before its first node.
  std::uint64_t event_nanoseconds = 0;   ///< The time of a timed event.
  std::uint64_t wait_nanoseconds = 0;    ///< The time of a stream's wait for an event.
  /// The clock rate of the SMs at a time of the fake clock, in MHz; null = 2000.
  std::function<double(std::uint64_t)> clock = nullptr;
  // Possible faults of a driver:
  unsigned max_groups = 1024;            ///< The most groups of a split.
  bool leaves_partitions = false;        ///< Kernels run on all SMs, whatever their context.
  bool graphs_leave_partitions = false;  ///< A graph's kernels run on all SMs.
  bool one_at_a_time = false;            ///< No kernel runs beside another.
  // For a device that resembles a real one, with work too large to be computed:
  /// Runs the enqueued work; null = an adversary with the seed.
  std::shared_ptr<FakeWorks> works = nullptr;
  /// The demand of a launch without a duration of its own; null = kernel_nanoseconds.
  std::function<FakeDemand(const std::string& kernel, const FakeLaunch&)> kernel_demand = nullptr;
  /// The demand of a copy or memset; null = copy_nanoseconds. `on_sms`: kernels of the driver do
  /// it.
  std::function<FakeDemand(std::size_t bytes, unsigned sms, bool on_sms)> copy_demand = nullptr;
  /// Whether a launch computes anything; null = every launch does.
  std::function<bool(const std::string& kernel, const FakeLaunch&)> is_computed = nullptr;
  std::size_t max_moved = SIZE_MAX;  ///< Larger copies within the device move nothing.
  bool keeps_books = true;           ///< Memory begins as NaN, and executions() has all work.
};

/// Work that has run.
struct FakeExecution {
  std::string what;  ///< A kernel's name; copy, set, free.
  int gpu = 0;
  unsigned first_sm = 0;
  unsigned sms = 0;
  std::uint64_t begin = 0;  ///< Nanoseconds of the fake clock.
  std::uint64_t end = 0;
};

/// The kernels of calibrate/cuda/kernels/spin.cu, on a device that has a clock and SMs.
FakeKernels proof_kernels(const FakeOptions& options);

/// Holds the state behind the functions of driver(). There is only one at a time. Enqueued work
/// runs only when the program waits for something or asks about it. The seed then picks one of the
/// orders that streams, events and graphs allow. So if an event is missing, some seed shows it.
///
/// The clock does not depend on that order. A piece of work begins when its predecessors have ended
/// and the host has enqueued it, and takes a set time. The host's clock advances only while it
/// waits. Streams do not compete.
///
/// Device memory is host memory that begins as NaN (0xFF), so ASan sees overruns and use after
/// free. The kernels of proof_kernels() are there; others are added. Calls that CUDA forbids get
/// CUDA's answer, and faults() reports them.
class FakeCuda {
 public:
  explicit FakeCuda(FakeOptions options = {});
  ~FakeCuda();
  FakeCuda(const FakeCuda&) = delete;
  FakeCuda& operator=(const FakeCuda&) = delete;

  const CudaDriver& driver() const;

  /// Adds kernels; one of the same name is replaced. Requires: their module is not yet loaded.
  void add(const FakeKernels& kernels);
  /// Sets the time of every later launch of this kernel.
  void set_duration(const std::string& kernel, std::uint64_t nanoseconds);
  /// Plants a failure. The nth call from now (1 = the next) of the function, by its plain name
  /// ("cuMemAlloc"), returns `result` and does nothing. If `lost`, so does every later call of any
  /// function.
  void fail(const std::string& call, int nth, CUresult result, bool lost = false);

  /// The host's clock in nanoseconds.
  std::uint64_t now() const;
  /// The number of calls of a function, by its plain name.
  int calls(std::string_view call) const;
  /// Errors of the program: "wait_before_record: ...", "wrong_context: ...", "bad_handle: ...",
  /// "default_stream: ...", "bad_pointer: ...", "kernel: ..." (it threw).
  std::vector<std::string> faults() const;
  /// Objects that are not yet given back: "1 stream, 2 events"; "" = none.
  std::string live() const;
  /// The executed work in its order.
  std::vector<FakeExecution> executions() const;
  /// Forgets the executions.
  void clear_executions();

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace plumbline
