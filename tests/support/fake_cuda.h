// A CUDA driver that lives in the test: devices, streams, events and graphs on the host's memory,
// with a clock of its own and an adversary who picks the order.
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
  unsigned stray = 0;  ///< So many of its SMs stand in no group, however it is split.
  std::size_t memory = std::size_t{1} << 30;  ///< Bytes.
};

struct FakeOptions {
  std::vector<FakeGpu> gpus{FakeGpu{}};
  bool peers = true;       ///< GPUs reach each other's memory.
  std::uint64_t seed = 1;  ///< Of the adversary.
  std::uint64_t kernel_nanoseconds = 1000;
  std::uint64_t copy_nanoseconds = 500;  ///< And one more for every 64 bytes; memset too.
  std::uint64_t graph_nanoseconds = 0;   ///< Of a graph by itself, before its first node.
  std::uint64_t event_nanoseconds = 0;   ///< Of an event that is timed.
  std::uint64_t wait_nanoseconds = 0;    ///< Of a stream's wait for an event.
  /// Of the SMs at a time of the fake clock, in MHz; null = 2000.
  std::function<double(std::uint64_t)> clock = nullptr;
  // What a driver could do wrong:
  unsigned max_groups = 1024;            ///< A split gives so many groups at most.
  bool leaves_partitions = false;        ///< Kernels run on all SMs, whatever their context.
  bool graphs_leave_partitions = false;  ///< Those of a graph do.
  bool one_at_a_time = false;            ///< No kernel runs beside another.
  // Of a device that is to be like one, and too large to be computed:
  /// Runs what is enqueued; null = an adversary, with the seed.
  std::shared_ptr<FakeWorks> works = nullptr;
  /// What a launch takes that has no duration of its own; null = kernel_nanoseconds.
  std::function<FakeDemand(const std::string& kernel, const FakeLaunch&)> kernel_demand = nullptr;
  /// What a copy or memset takes; null = copy_nanoseconds. `on_sms`: kernels of the driver do it.
  std::function<FakeDemand(std::size_t bytes, unsigned sms, bool on_sms)> copy_demand = nullptr;
  /// Whether a launch computes anything; null = every one does.
  std::function<bool(const std::string& kernel, const FakeLaunch&)> is_computed = nullptr;
  std::size_t max_moved = SIZE_MAX;  ///< Copies within the device of more bytes move nothing.
  bool keeps_books = true;           ///< Memory begins as NaN, and executions() tells what ran.
};

/// Something that has run.
struct FakeExecution {
  std::string what;  ///< A kernel's name; copy, set, free.
  int gpu = 0;
  unsigned first_sm = 0;
  unsigned sms = 0;
  std::uint64_t begin = 0;  ///< Nanoseconds of the fake clock.
  std::uint64_t end = 0;
};

/// calibrate/cuda/kernels/spin.cu, on a device that has a clock and SMs.
FakeKernels proof_kernels(const FakeOptions& options);

/// Holds the state behind the functions of driver(); one at a time. Work is enqueued and runs only
/// when something is waited for or asked about, and then in an order that the seed picks among all
/// that streams, events and graphs leave free: where an event is missing, some seed shows it.
///
/// The clock knows nothing of that order. A piece of work begins when what it waits for has ended
/// and the host has enqueued it, and takes a set time; the host's clock stands still but for
/// waiting. Streams do not compete.
///
/// Device memory is host memory that begins as NaN (0xFF), so ASan sees overruns and use after
/// free. Those of proof_kernels() are there; others are added. What CUDA forbids is
/// answered as CUDA answers it, and told by faults().
class FakeCuda {
 public:
  explicit FakeCuda(FakeOptions options = {});
  ~FakeCuda();
  FakeCuda(const FakeCuda&) = delete;
  FakeCuda& operator=(const FakeCuda&) = delete;

  const CudaDriver& driver() const;

  /// Replaces one of the same name. Before the module that has it is loaded.
  void add(const FakeKernels& kernels);
  /// Every launch of this kernel takes so long from now on.
  void set_duration(const std::string& kernel, std::uint64_t nanoseconds);
  /// The nth call from now (1 = the next) of the function, by its plain name ("cuMemAlloc"),
  /// returns `result` and does nothing. Where `lost`, every later call of any function does too.
  void fail(const std::string& call, int nth, CUresult result, bool lost = false);

  /// The host's nanoseconds.
  std::uint64_t now() const;
  /// How often a function was called, by its plain name.
  int calls(std::string_view call) const;
  /// What was done that no program should do: "wait_before_record: ...", "wrong_context: ...",
  /// "bad_handle: ...", "default_stream: ...", "bad_pointer: ...", "kernel: ..." (it threw).
  std::vector<std::string> faults() const;
  /// What is not yet given back: "1 stream, 2 events"; "" = nothing.
  std::string live() const;
  /// In the order in which it ran.
  std::vector<FakeExecution> executions() const;
  /// Forgets them.
  void clear_executions();

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace plumbline
