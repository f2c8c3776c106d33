// libcuda.so.1 without a GPU: the functions that are called, on a device that takes its time.
//
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/rehearsal/elements.h"
#include "tests/rehearsal/enqueue.h"
#include "tests/rehearsal/timed_device.h"
#include "tests/support/emulated_kernels.h"
#include "tests/support/fake_cuda_state.h"

namespace plumbline {
namespace {

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::uint64_t threads_of(const FakeLaunch& launch) {
  std::uint64_t threads = 1;
  for (const unsigned extent : launch.grid) threads *= extent;
  for (const unsigned extent : launch.block) threads *= extent;
  return threads;
}

/// The largest number among the arguments that can be one of elements: kernels that loop over their
/// grid have fewer threads.
std::uint64_t largest_count(const FakeLaunch& launch, const FakeKernel& kernel) {
  std::uint64_t largest = 0;
  for (std::size_t i = 0; i < kernel.sizes.size(); ++i) {
    if (kernel.sizes[i] != sizeof(std::uint64_t)) continue;
    std::uint64_t value = 0;
    std::memcpy(&value, launch.arguments[i], sizeof value);
    constexpr std::uint64_t kNoPointer = std::uint64_t{1} << 36;
    if (value < kNoPointer) largest = std::max(largest, value);
  }
  return largest;
}

/// The work of a launch, by its grid and arguments.
struct Size {
  double elements = 0;
  double operations = 0;  ///< For a plain product; else 0.
  double bytes = 0;
};

Size size_of(const std::string& name, const FakeLaunch& launch) {
  Size size;
  size.elements = static_cast<double>(threads_of(launch));
  if (name.rfind("plumbline_product_", 0) == 0) {
    long long extents[4] = {};  // rows, columns, depth, batch: kernels/product.cu
    std::memcpy(extents, launch.arguments[3], sizeof extents);
    const auto [rows, columns, depth, batch] = extents;
    size.operations =
        2.0 * static_cast<double>(rows * columns) * static_cast<double>(depth * batch);
    size.bytes = 4 * static_cast<double>(batch * (rows * depth + columns * depth + rows * columns));
    return size;
  }
  const auto& kernels = test::emulated_kernels();
  if (const auto known = kernels.find(name); known != kernels.end())
    size.elements =
        std::max(size.elements, static_cast<double>(largest_count(launch, known->second)));
  size.bytes = 8 * size.elements;
  const bool is_fused = !name.ends_with("_f32") && !name.ends_with("_bf16") &&
                        name.find("attention") != std::string::npos;
  if (is_fused) size.elements *= 64;  // each meets many others
  return size;
}

/// An H100 as its data sheet has it, in round numbers; plain products reach a part of that.
FakeDemand demand_of(const std::string& name, const FakeLaunch& launch) {
  const Size size = size_of(name, launch);
  const double blocks = static_cast<double>(launch.grid[0]) * launch.grid[1] * launch.grid[2];
  const double held = std::min(blocks, static_cast<double>(launch.sms));
  constexpr double kOperationsOfSm = 230;  // in a nanosecond
  constexpr double kElementsOfSm = 20;
  const double time = size.operations / kOperationsOfSm + size.elements / kElementsOfSm;
  return {static_cast<std::uint64_t>(1300 + time / held), size.bytes, held};
}

/// Kernels of the proofs always are.
bool is_computed(const std::string& name, const FakeLaunch&) {
  return rehearsal::computes() || test::emulated_kernels().count(name) == 0;
}

FakeDemand copy_demand(std::size_t bytes, unsigned sms, bool on_sms) {
  const auto moved = static_cast<double>(bytes);
  if (on_sms) {
    const double held = std::clamp(moved / 32768, 1.0, static_cast<double>(sms));
    return {1400, 2 * moved, held};
  }
  constexpr double kEngine = 300;  // bytes in a nanosecond
  return {static_cast<std::uint64_t>(1300 + moved / kEngine), 2 * moved, 0};
}

struct Gpu {
  std::shared_ptr<TimedWorks> works =
      std::make_shared<TimedWorks>(TimedDevice{}, setting("PLUMBLINE_REHEARSAL_SEED", 1));
  FakeCuda cuda{[this] {
    FakeOptions options;
    FakeGpu gpu;
    gpu.name = "Made-up GPU";
    gpu.memory = std::size_t{80} << 30;
    gpu.stray = 4;  // 132 SMs in groups of 8
    options.gpus = {gpu};
    options.works = works;
    options.graph_nanoseconds = 1900;  // an H100's, as the next
    options.event_nanoseconds = 1300;
    options.kernel_demand = demand_of;
    options.copy_demand = copy_demand;
    options.is_computed = is_computed;
    if (!rehearsal::computes()) options.max_moved = std::size_t{1} << 20;
    options.keeps_books = false;
    return options;
  }()};

  Gpu() {
    cuda.add(test::emulated_kernels());
    works->set_pause([](std::chrono::nanoseconds time) {
      FakeCuda::State& s = *fake_cuda_state();
      s.mutex.unlock();
      constexpr std::chrono::microseconds kLate{200};  // a thread that sleeps comes back late
      if (time > kLate) {
        std::this_thread::sleep_for(time - kLate / 2);
      } else {
        std::this_thread::yield();
      }
      s.mutex.lock();
    });
  }
  ~Gpu() {
    for (const std::string& fault : cuda.faults())
      std::fprintf(stderr, "made-up GPU: %s\n", fault.c_str());
  }
};

const CudaDriver& driver() {
  static Gpu gpu;
  return gpu.cuda.driver();
}

}  // namespace
}  // namespace plumbline

extern "C" int plumbline_rehearsal_enqueue(CUstream handle, const char* what, double nanoseconds,
                                           double bytes, double sms, void (*act)(void*),
                                           void* argument, void (*forget)(void*)) {
  using namespace plumbline;
  PLUMBLINE_FAKE_CALL(plumbline_rehearsal_enqueue);
  FakeStream* const stream = s.stream(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  FakeTask task = s.task(*stream, what);
  task.is_kernel = true;
  const std::shared_ptr<void> kept(argument, [forget](void* pointer) {
    if (forget != nullptr) forget(pointer);
  });
  const FakeDemand demand{static_cast<std::uint64_t>(nanoseconds), bytes,
                          std::min(sms, static_cast<double>(task.sms))};
  task.act = [act, kept, demand](const FakeTask&, std::uint64_t) {
    if (act != nullptr) act(kept.get());
    return demand;
  };
  return s.enqueue(*stream, std::move(task));
}

extern "C" unsigned plumbline_rehearsal_sms(CUstream handle) {
  using namespace plumbline;
  FakeCuda::State& s = *fake_cuda_state();
  const std::lock_guard lock(s.mutex);
  const FakeStream* const stream = s.stream(handle);
  return stream == nullptr ? 0 : stream->context->sms;
}

// Each function jumps to the one of the table, whatever its arguments. This source is linked last,
// so that the table is filled once all kernels are there.
#define PLUMBLINE_EXPORT(call) PLUMBLINE_EXPORT_AS(call)
#define PLUMBLINE_EXPORT_AS(name)                                                \
  extern "C" {                                                                   \
  extern __attribute__((visibility("hidden"))) void* plumbline_of_##name;        \
  void* plumbline_of_##name = reinterpret_cast<void*>(plumbline::driver().name); \
  }                                                                              \
  asm(".pushsection .text\n.globl " #name "\n.type " #name ", @function\n" #name \
      ":\n  jmp *plumbline_of_" #name "(%rip)\n.popsection\n");
PLUMBLINE_CUDA_CALLS(PLUMBLINE_EXPORT)
