// Blocks of threads that take turns on one thread of the host.
//
// SPDX-License-Identifier: MIT
#include "tests/support/emulated_kernels.h"

#include <setjmp.h>  // _setjmp
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "base/bug.h"
#include "base/random.h"
#include "tests/support/cuda_emulation.h"

#if defined(PLUMBLINE_SANITIZED_ADDRESS)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(PLUMBLINE_SANITIZED_THREAD)
#include <sanitizer/tsan_interface.h>
#endif

#if defined(PLUMBLINE_SANITIZED_ADDRESS) || defined(PLUMBLINE_SANITIZED_THREAD)
#define PLUMBLINE_SWAPS_CONTEXTS
#endif

namespace plumbline::test::emulation {
namespace {

/// A stack with a thread of the block on it. Every switch is reported to the sanitizers. Without
/// them it is a jump: swapcontext() asks the kernel for the signal mask each time.
class Fiber {
 public:
  Fiber() : stack_(std::make_unique_for_overwrite<char[]>(kStackBytes)) {
#if defined(PLUMBLINE_SANITIZED_THREAD)
    sanitizer_fiber_ = __tsan_create_fiber(0);
#endif
  }
  ~Fiber() {
#if defined(PLUMBLINE_SANITIZED_THREAD)
    __tsan_destroy_fiber(sanitizer_fiber_);
#endif
  }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// The next enter() runs `body` from its start. It does not return.
  void start(void (*body)()) {
    is_parked = false;
    getcontext(&own_);
    own_.uc_stack.ss_sp = stack_.get();
    own_.uc_stack.ss_size = kStackBytes;
    own_.uc_link = nullptr;
    makecontext(&own_, body, 0);
    is_new_ = true;
  }

  /// From the scheduler: runs until leave().
  void enter() {
#if defined(PLUMBLINE_SANITIZED_ADDRESS)
    void* fake_stack = nullptr;
    __sanitizer_start_switch_fiber(&fake_stack, stack_.get(), kStackBytes);
#endif
#if defined(PLUMBLINE_SANITIZED_THREAD)
    scheduler_fiber_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(sanitizer_fiber_, 0);
#endif
#if defined(PLUMBLINE_SWAPS_CONTEXTS)
    swapcontext(&scheduler_, &own_);
#else
    if (_setjmp(scheduler_jump_) == 0) {  // NOLINT(cert-err52-cpp): no frame is left
      if (std::exchange(is_new_, false)) setcontext(&own_);
      _longjmp(own_jump_, 1);  // NOLINT(cert-err52-cpp)
    }
#endif
#if defined(PLUMBLINE_SANITIZED_ADDRESS)
    __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
  }

  /// From the fiber, first of all.
  void entered() {
#if defined(PLUMBLINE_SANITIZED_ADDRESS)
    __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack_, &scheduler_stack_bytes_);
#endif
  }

  /// From the fiber: back to the scheduler.
  void leave() {
#if defined(PLUMBLINE_SANITIZED_ADDRESS)
    void* fake_stack = nullptr;
    __sanitizer_start_switch_fiber(&fake_stack, scheduler_stack_, scheduler_stack_bytes_);
#endif
#if defined(PLUMBLINE_SANITIZED_THREAD)
    __tsan_switch_to_fiber(scheduler_fiber_, 0);
#endif
#if defined(PLUMBLINE_SWAPS_CONTEXTS)
    swapcontext(&own_, &scheduler_);
#else
    if (_setjmp(own_jump_) == 0) _longjmp(scheduler_jump_, 1);  // NOLINT(cert-err52-cpp)
#endif
#if defined(PLUMBLINE_SANITIZED_ADDRESS)
    __sanitizer_finish_switch_fiber(fake_stack, &scheduler_stack_, &scheduler_stack_bytes_);
#endif
  }

  unsigned thread = 0;     ///< The thread that it runs.
  bool is_parked = false;  ///< Whether it waits for another block.

 private:
  static constexpr std::size_t kStackBytes = 128 * 1024;

  std::unique_ptr<char[]> stack_;
  ucontext_t own_{};
  bool is_new_ = false;  ///< Whether it begins at its start.
#if defined(PLUMBLINE_SWAPS_CONTEXTS)
  ucontext_t scheduler_{};
#else
  jmp_buf own_jump_{};
  jmp_buf scheduler_jump_{};
#endif
#if defined(PLUMBLINE_SANITIZED_ADDRESS)
  const void* scheduler_stack_ = nullptr;
  std::size_t scheduler_stack_bytes_ = 0;
#endif
#if defined(PLUMBLINE_SANITIZED_THREAD)
  void* sanitizer_fiber_ = nullptr;
  void* scheduler_fiber_ = nullptr;
#endif
};

constexpr unsigned kLanes = 32;

/// Runs blocks. Each thread of the host has its own scheduler. A fiber runs one thread of the block
/// after the other until one waits at a barrier, so a kernel without barriers needs one fiber.
class Scheduler {
 public:
  void run_block(const std::function<void()>& body, std::vector<unsigned> order) {
    body_ = &body;
    order_ = std::move(order);
    next_ = 0;
    finished_ = 0;
    waiting_.clear();
    ready_.clear();
    in_warp_.assign((order_.size() + kLanes - 1) / kLanes, {});
    for (std::size_t used = 0; next_ < order_.size(); ++used) {
      if (used == fibers_.size()) fibers_.push_back(std::make_unique<Fiber>());
      if (!fibers_[used]->is_parked) fibers_[used]->start(&Scheduler::run_fiber);
      enter(fibers_[used].get());
      enter_ready();
    }
    while (!waiting_.empty()) {
      PLUMBLINE_CHECK(finished_ == 0, "threads have left while others wait at a barrier",
                      finished_);
      PLUMBLINE_CHECK(waiting_.size() == order_.size(),
                      "threads wait for their warp while others wait at a barrier",
                      waiting_.size());
      for (Fiber* fiber : std::exchange(waiting_, {})) {
        enter(fiber);
        enter_ready();
      }
    }
    PLUMBLINE_CHECK(finished_ == order_.size(), finished_, order_.size());
  }

  void wait_at_barrier() {
    waiting_.push_back(current_);
    current_->leave();
  }

  /// Waits for the threads of the same warp only.
  void wait_for_warp() {
    const std::size_t warp = current_->thread / kLanes;
    std::vector<Fiber*>& waiting = in_warp_[warp];
    if (waiting.size() + 1 < std::min<std::size_t>(kLanes, order_.size() - warp * kLanes)) {
      waiting.push_back(current_);
      current_->leave();
    } else {
      ready_.insert(ready_.end(), waiting.begin(), waiting.end());
      waiting.clear();
    }
  }

  Place place;

 private:
  static void run_fiber();

  /// Lets one warp get as far ahead of the others as barriers allow.
  void enter_ready() {
    while (!ready_.empty()) {
      Fiber* const fiber = ready_.back();
      ready_.pop_back();
      enter(fiber);
    }
  }

  void enter(Fiber* fiber) {
    current_ = fiber;
    set_thread(fiber->thread);
    fiber->enter();
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  }
  void run_threads(Fiber& fiber);
  void set_thread(unsigned thread) {
    const Extent3& extent = place.threads;
    place.thread = {thread % extent.x, thread / extent.x % extent.y, thread / extent.x / extent.y};
  }

  const std::function<void()>* body_ = nullptr;
  std::vector<unsigned> order_;  ///< The order of the threads.
  std::size_t next_ = 0;         ///< The next thread to begin.
  std::size_t finished_ = 0;
  std::vector<Fiber*> waiting_;
  std::vector<std::vector<Fiber*>> in_warp_;  ///< By warp: fibers that wait for its rest.
  std::vector<Fiber*> ready_;                 ///< Fibers whose warp is complete.
  Fiber* current_ = nullptr;
  std::exception_ptr thrown_;  ///< From a thread of the block: an exception cannot leave its stack.
  std::vector<std::unique_ptr<Fiber>> fibers_;
};

Scheduler& scheduler() {
  thread_local Scheduler of_this_thread;
  return of_this_thread;
}

void Scheduler::run_fiber() {
  Scheduler& self = scheduler();
  Fiber* fiber = self.current_;
  fiber->entered();
  for (;;) {
    fiber->is_parked = false;
    try {
      self.run_threads(*fiber);
    } catch (...) {
      self.thrown_ = std::current_exception();
    }
    fiber->is_parked = true;
    fiber->leave();
  }
}

void Scheduler::run_threads(Fiber& fiber) {
  while (next_ < order_.size()) {
    fiber.thread = order_[next_++];
    set_thread(fiber.thread);
    (*body_)();
    ++finished_;
  }
}

/// 0 .. count - 1, shuffled (Fisher and Yates 1938).
std::vector<unsigned> shuffled(unsigned count, std::uint64_t seed) {
  std::vector<unsigned> order(count);
  for (unsigned i = 0; i < count; ++i) order[i] = i;
  for (unsigned i = count; i > 1; --i) {
    const auto other = static_cast<unsigned>(random_uniform(seed, i) * i);
    std::swap(order[i - 1], order[other]);
  }
  return order;
}

/// The order of a block's threads: all of them mixed, or warp by warp.
std::vector<unsigned> order_of_threads(unsigned threads, std::uint64_t seed) {
  std::vector<unsigned> order = shuffled(threads, seed);
  if (seed % 2 == 0) return order;
  std::vector<unsigned> warps = shuffled((threads + kLanes - 1) / kLanes, seed);
  std::stable_sort(order.begin(), order.end(),
                   [&](unsigned a, unsigned b) { return warps[a / kLanes] < warps[b / kLanes]; });
  return order;
}

}  // namespace

const Place& place() { return scheduler().place; }
void require_aligned(const void* row) {
  constexpr std::uintptr_t kRowBytes = 16;
  const auto at = reinterpret_cast<std::uintptr_t>(row);
  PLUMBLINE_CHECK(at % kRowBytes == 0, "a row of a matrix that is not aligned", at);
}
void barrier() { scheduler().wait_at_barrier(); }

void warp_barrier() { scheduler().wait_for_warp(); }

const void* const* rows_of_warp(const void* row) {
  thread_local std::array<const void*, 1024> of_block;
  const unsigned thread = place().thread.x;
  of_block[thread] = row;
  warp_barrier();
  return of_block.data() + thread / kLanes * kLanes;
}

namespace {

/// The most that a launch gets without asking for more: 48 KiB.
constexpr std::size_t kSharedFloats = 12288;

FakeKernels& table() {
  static FakeKernels kernels;
  return kernels;
}

void run_grid(const FakeLaunch& launch, const std::function<void()>& body);

template <class... Arguments, std::size_t... places>
FakeKernel emulated(void (*kernel)(Arguments...), std::index_sequence<places...>) {
  return {{sizeof(Arguments)...},
          [kernel](const FakeLaunch& launch) {
            std::tuple<Arguments...> arguments;
            (std::memcpy(&std::get<places>(arguments), launch.arguments[places], sizeof(Arguments)),
             ...);
            run_grid(launch, [&] { std::apply(kernel, arguments); });
          },
          {}};
}

struct Named {
  template <class... Arguments>
  Named(const char* name, void (*kernel)(Arguments...)) {
    table()[name] = emulated(kernel, std::index_sequence_for<Arguments...>());
  }
};

}  // namespace
}  // namespace plumbline::test::emulation

#define PLUMBLINE_KERNEL_NAMED(name) \
  static const ::plumbline::test::emulation::Named named_##name(#name, &name);

#include "calibrate/cuda/kernels/attention.cu"
#include "calibrate/cuda/kernels/convolution.cu"
#include "calibrate/cuda/kernels/elementwise.cu"
#include "calibrate/cuda/kernels/embedding.cu"
#include "calibrate/cuda/kernels/fused_attention.cu"
#include "calibrate/cuda/kernels/gemm.cu"
#include "calibrate/cuda/kernels/heads.cu"
#include "calibrate/cuda/kernels/image.cu"
#include "calibrate/cuda/kernels/loss.cu"
#include "calibrate/cuda/kernels/lstm.cu"
#include "calibrate/cuda/kernels/norm.cu"
#include "calibrate/cuda/kernels/update.cu"

namespace plumbline::kernels {
alignas(16) __thread float shared[test::emulation::kSharedFloats];
}

namespace plumbline::test::emulation {
namespace {

void run_grid(const FakeLaunch& launch, const std::function<void()>& body) {
  thread_local std::uint64_t launches = 0;
  const std::uint64_t seed = ++launches;
  PLUMBLINE_CHECK(launch.shared_bytes <= sizeof(kernels::shared), launch.shared_bytes);
  const unsigned blocks = launch.grid[0] * launch.grid[1] * launch.grid[2];
  const unsigned threads = launch.block[0] * launch.block[1] * launch.block[2];
  PLUMBLINE_CHECK(blocks > 0 && threads > 0 && threads <= 1024 && launch.grid[1] < 65536 &&
                      launch.grid[2] < 65536,
                  blocks, threads, launch.grid[1], launch.grid[2]);
  const std::vector<unsigned> thread_order = order_of_threads(threads, seed);
  Place& place = scheduler().place;
  place.threads = {launch.block[0], launch.block[1], launch.block[2]};
  place.blocks = {launch.grid[0], launch.grid[1], launch.grid[2]};
  for (const unsigned block : shuffled(blocks, seed)) {
    const Extent3& extent = place.blocks;
    place.block = {block % extent.x, block / extent.x % extent.y, block / extent.x / extent.y};
    std::memset(kernels::shared, 0xff, sizeof(kernels::shared));  // NaN
    scheduler().run_block(body, thread_order);
    const auto* bytes = reinterpret_cast<const unsigned char*>(kernels::shared);
    const bool intact = std::all_of(bytes + launch.shared_bytes, bytes + sizeof(kernels::shared),
                                    [](unsigned char byte) { return byte == 0xff; });
    PLUMBLINE_CHECK(intact, "shared memory past what was asked for", launch.shared_bytes);
  }
}

}  // namespace
}  // namespace plumbline::test::emulation

namespace plumbline::test {

namespace {

/// A fill of many numbers by one loop of the host, as links are measured with megabytes.
FakeKernels with_fast_fill(FakeKernels kernels) {
  constexpr long long kMany = 1 << 14;
  FakeKernel& fill = kernels.at("plumbline_fill_f32");
  fill.run = [by_threads = fill.run](const FakeLaunch& launch) {
    float* y = nullptr;
    float value = 0;
    long long count = 0;
    std::memcpy(&y, launch.arguments[0], sizeof y);
    std::memcpy(&value, launch.arguments[1], sizeof value);
    std::memcpy(&count, launch.arguments[2], sizeof count);
    if (count < kMany) return by_threads(launch);
    std::fill(y, y + count, value);
  };
  return kernels;
}

}  // namespace

const FakeKernels& emulated_kernels() {
  static const FakeKernels kernels = with_fast_fill(emulation::table());
  return kernels;
}

}  // namespace plumbline::test
