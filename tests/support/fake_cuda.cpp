// The fake driver's state: memory, handles, planted failures.
//
// SPDX-License-Identifier: MIT
#include "tests/support/fake_cuda.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "base/bug.h"
#include "tests/support/fake_cuda_state.h"

namespace plumbline {
namespace {

FakeCuda::State* the_state = nullptr;
int generations = 0;

template <class T>
T argument(const FakeLaunch& launch, std::size_t index) {
  T value;
  std::memcpy(&value, launch.arguments[index], sizeof value);
  return value;
}

}  // namespace

FakeKernels proof_kernels(const FakeOptions& options) {
  FakeKernel spin{{8, 8}, {}, {}};
  spin.duration = [](const FakeLaunch& launch) { return argument<std::uint64_t>(launch, 0); };
  spin.run = [](const FakeLaunch& launch) {
    auto* times = argument<std::uint64_t*>(launch, 1);
    times[0] = launch.begin;
    times[1] = launch.begin + argument<std::uint64_t>(launch, 0);
  };
  FakeKernel gate{{8, 4, 8}, {}, {}};
  gate.holds = [](const FakeLaunch& launch) {
    return std::atomic_ref(argument<unsigned*>(launch, 0)[0]) != argument<unsigned>(launch, 1);
  };
  gate.duration = [holds = gate.holds](const FakeLaunch& launch) {
    return holds(launch) ? argument<std::uint64_t>(launch, 2) : 0;
  };
  gate.run = [holds = gate.holds](const FakeLaunch& launch) {
    if (holds(launch)) argument<unsigned*>(launch, 0)[1] = 1;
  };
  FakeKernel where{{8, 8}, {}, {}};
  where.run = [](const FakeLaunch& launch) {
    auto* sm_of_block = argument<std::uint32_t*>(launch, 0);
    for (unsigned block = 0; block < launch.grid[0]; ++block)
      sm_of_block[block] = launch.first_sm + block % launch.sms;
  };
  FakeKernel note{{8}, {}, {}};
  note.duration = [](const FakeLaunch&) { return std::uint64_t{0}; };
  note.run = [](const FakeLaunch& launch) { *argument<std::uint64_t*>(launch, 0) = launch.begin; };
  FakeKernel wait{{8, 8}, {}, {}};
  wait.duration = [](const FakeLaunch& launch) {
    const std::uint64_t end =
        *argument<const std::uint64_t*>(launch, 0) + argument<std::uint64_t>(launch, 1);
    return end - std::min(end, launch.begin);
  };
  FakeKernel count{{8, 8}, {}, {}};
  count.duration = [](const FakeLaunch& launch) { return argument<std::uint64_t>(launch, 0); };
  count.run = [clock = options.clock](const FakeLaunch& launch) {
    auto* const counted = argument<std::uint64_t*>(launch, 1);
    counted[1] = argument<std::uint64_t>(launch, 0);
    const double mhz = clock == nullptr ? 2000 : clock(launch.begin);
    counted[0] = static_cast<std::uint64_t>(mhz * static_cast<double>(counted[1]) / 1000);
  };
  return {{"plumbline_spin", spin},          {"plumbline_count_cycles", count},
          {"plumbline_wait_for_host", gate}, {"plumbline_where", where},
          {"plumbline_note_time", note},     {"plumbline_wait_since", wait}};
}

FakeCuda::State* fake_cuda_state() { return the_state; }

FakeCuda::State::State(FakeOptions given)
    : options(std::move(given)),
      generation(++generations),
      kernels(proof_kernels(options)),
      works(options.works != nullptr
                ? options.works
                : std::make_shared<FakeAdversary>(options.seed, options.one_at_a_time)) {
  for (std::size_t gpu = 0; gpu < options.gpus.size(); ++gpu) {
    primaries.push_back(std::make_unique<FakeContext>());
    primaries.back()->gpu = static_cast<int>(gpu);
    primaries.back()->sms = options.gpus[gpu].sms;
  }
  works->on_done = [this](const FakeWork& work) {
    if (!options.keeps_books) return;
    const FakeTask& task = work.task;
    executions.push_back({task.what, task.gpu, task.first_sm, task.sms, work.begin, work.end});
  };
  works->on_failure = [this](const std::string& text) {
    faults.push_back("kernel: " + text);
    lost = CUDA_ERROR_LAUNCH_FAILED;
  };
  add_fake_device_calls(driver);
  add_fake_memory_calls(driver);
  add_fake_stream_calls(driver);
  add_fake_graph_calls(driver);
}

FakeCuda::State::~State() {
  for (const auto& [pointer, allocation] : allocations)
    std::free(reinterpret_cast<void*>(pointer));  // NOLINT(performance-no-int-to-ptr)
}

std::optional<CUresult> FakeCuda::State::enter(const char* call) {
  ++calls[call];
  if (lost) return lost;
  std::optional<CUresult> answer;
  const auto [begin, end] = planted.equal_range(std::string_view(call));
  for (auto failure = begin; failure != end; ++failure) {
    if (--failure->second.calls_left != 0) continue;
    answer = failure->second.result;
    if (failure->second.lost) lost = answer;
  }
  return answer;
}

CUresult FakeCuda::State::fault(const std::string& text, CUresult result) {
  faults.push_back(text);
  return result;
}

CUresult FakeCuda::State::finish(const FakeWorkPointer& work) {
  works->finish(work);
  return lost.value_or(CUDA_SUCCESS);
}

bool FakeCuda::State::is_memory(CUdeviceptr pointer, std::size_t size, const char* what) {
  auto found = allocations.upper_bound(static_cast<std::uintptr_t>(pointer));
  if (found != allocations.begin()) {
    --found;
    const std::size_t offset = static_cast<std::size_t>(pointer) - found->first;
    if (offset <= found->second.size && size <= found->second.size - offset) return true;
  }
  fault(fmt::format("bad_pointer: {} of {} bytes outside of any allocation", what, size),
        CUDA_ERROR_INVALID_VALUE);
  return false;
}

bool FakeCuda::State::is_pinned(const void* pointer) const {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const auto found = allocations.upper_bound(address);
  if (found == allocations.begin()) return false;
  const auto& [base, allocation] = *std::prev(found);
  return address - base < allocation.size;
}

std::size_t FakeCuda::State::used(int gpu) const {
  std::size_t sum = 0;
  for (const auto& [pointer, allocation] : allocations)
    if (allocation.gpu == gpu) sum += allocation.size;
  return sum;
}

CUresult FakeCuda::State::allocate(CUdeviceptr* pointer, std::size_t size, int gpu,
                                   FakePool* pool) {
  if (size == 0 || pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (gpu >= 0) {
    const std::size_t memory = options.gpus[static_cast<std::size_t>(gpu)].memory;
    const std::size_t taken = used(gpu);
    if (size > memory - std::min(memory, taken)) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  void* block = nullptr;
  if (posix_memalign(&block, 256, size) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  if (options.keeps_books)
    std::memset(block, 0xFF, size);  // NaN in every format shows reads of memory that nobody wrote
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  allocations[address] = {size, gpu, pool, false};
  *pointer = static_cast<CUdeviceptr>(address);
  return CUDA_SUCCESS;
}

void FakeCuda::State::release(CUdeviceptr pointer) {
  allocations.erase(static_cast<std::uintptr_t>(pointer));
  std::free(reinterpret_cast<void*>(pointer));  // NOLINT(performance-no-int-to-ptr)
}

FakeDemand FakeCuda::State::copy_time(const FakeTask& task, std::size_t size, bool on_sms) const {
  if (options.copy_demand != nullptr) return options.copy_demand(size, task.sms, on_sms);
  return options.copy_nanoseconds + size / 64;
}

FakeCuda::FakeCuda(FakeOptions options) : state_(std::make_unique<State>(std::move(options))) {
  PLUMBLINE_CHECK(the_state == nullptr, "one fake driver at a time");
  the_state = state_.get();
}

FakeCuda::~FakeCuda() { the_state = nullptr; }

const CudaDriver& FakeCuda::driver() const { return state_->driver; }

void FakeCuda::add(const FakeKernels& kernels) {
  const std::lock_guard lock(state_->mutex);
  for (const auto& [name, kernel] : kernels) state_->kernels[name] = kernel;
}

void FakeCuda::set_duration(const std::string& kernel, std::uint64_t nanoseconds) {
  const std::lock_guard lock(state_->mutex);
  state_->durations[kernel] = nanoseconds;
}

void FakeCuda::fail(const std::string& call, int nth, CUresult result, bool lost) {
  const std::lock_guard lock(state_->mutex);
  state_->planted.emplace(call, PlantedFailure{nth, result, lost});
}

std::uint64_t FakeCuda::now() const {
  const std::lock_guard lock(state_->mutex);
  return state_->works->now;
}

int FakeCuda::calls(std::string_view call) const {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->calls.find(call);
  return found == state_->calls.end() ? 0 : found->second;
}

std::vector<std::string> FakeCuda::faults() const {
  const std::lock_guard lock(state_->mutex);
  return state_->faults;
}

std::string FakeCuda::live() const {
  const std::lock_guard lock(state_->mutex);
  std::string text;
  const auto add = [&](std::size_t count, const char* what) {
    if (count > 0)
      text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", count, what, count > 1 ? "s" : "");
  };
  std::size_t retained = 0;
  for (const auto& primary : state_->primaries)
    retained += static_cast<std::size_t>(primary->retained);
  add(retained, "primary context");
  add(state_->greens.size(), "green context");
  add(state_->modules.size(), "module");
  add(state_->streams.size(), "stream");
  add(state_->events.size(), "event");
  add(state_->graphs.size(), "graph");
  add(state_->execs.size(), "executable graph");
  add(state_->pools.size(), "pool");
  add(state_->allocations.size(), "allocation");
  return text;
}

std::vector<FakeExecution> FakeCuda::executions() const {
  const std::lock_guard lock(state_->mutex);
  return state_->executions;
}

void FakeCuda::clear_executions() {
  const std::lock_guard lock(state_->mutex);
  state_->executions.clear();
}

}  // namespace plumbline
