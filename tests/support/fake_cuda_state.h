// The state behind the functions of the fake driver.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/fake_cuda.h"
#include "tests/support/fake_work.h"

namespace plumbline {

struct FakeContext {
  int gpu = 0;
  bool green = false;
  unsigned first_sm = 0;
  unsigned sms = 0;
  int retained = 0;
};

struct FakeDescription {
  unsigned first_sm = 0;
  unsigned sms = 0;
};

struct FakeNode {
  FakeTask task;
  std::size_t lane = 0;
  std::vector<std::size_t> after;
};

/// The nodes of a captured graph, or of one that is being captured.
struct FakeCapture {
  std::vector<FakeNode> nodes;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;
  bool open = true;
  bool spoilt = false;
};

struct FakeStream {
  FakeContext* context = nullptr;
  std::size_t lane = 0;
  FakeWorkPointer last;
  std::shared_ptr<FakeCapture> capture;  ///< Its current capture; null = none.
  bool began_capture = false;
  std::vector<std::size_t> tail;  ///< The predecessors of its next node.
};

struct FakeEvent {
  FakeContext* context = nullptr;
  bool timed = true;
  FakeWorkPointer work;  ///< The last record; null = never recorded.
  std::shared_ptr<FakeCapture> capture;
  std::vector<std::size_t> nodes;
};

struct FakeGraph {
  std::shared_ptr<FakeCapture> capture;
};

struct FakeExec {
  std::vector<FakeNode> nodes;
  FakeWorkPointer last;  ///< The last launch: launches follow each other.
};

struct FakeModule {
  FakeContext* context = nullptr;
};

struct FakeFunction {
  FakeModule* module = nullptr;
  std::string name;
  FakeKernel kernel;
  unsigned max_shared = 48 << 10;
};

struct FakePool {
  int gpu = 0;
  std::uint64_t used = 0, used_high = 0;
  std::uint64_t reserved = 0, reserved_high = 0;
  std::uint64_t threshold = 0;
};

struct FakeAllocation {
  std::size_t size = 0;
  int gpu = -1;  ///< -1 = pinned host memory.
  FakePool* pool = nullptr;
  bool freed = false;  ///< Its release is enqueued.
};

struct PlantedFailure {
  int calls_left = 0;
  CUresult result = CUDA_SUCCESS;
  bool lost = false;
};

/// Maps handles to objects.
template <class T>
using FakeObjects = std::map<const void*, std::unique_ptr<T>>;

struct FakeCuda::State {
  explicit State(FakeOptions given);
  ~State();

  // Every function calls this first.
  /// The result that the call returns instead of doing its work, if there is one.
  std::optional<CUresult> enter(const char* call);
  CUresult fault(const std::string& text, CUresult result);
  /// The object of a handle. Null if there is none, which is a fault.
  template <class T>
  T* find(FakeObjects<T>& objects, const void* handle, const char* what);
  template <class Handle, class T>
  Handle put(FakeObjects<T>& objects, std::unique_ptr<T> object);

  FakeContext* current();
  /// The stream of the handle, for work to be enqueued.
  FakeStream* stream(CUstream handle);
  /// Puts the task behind the stream's work, or into the graph that the stream captures.
  CUresult enqueue(FakeStream& stream, FakeTask task);
  /// A task that runs on the SMs of the stream's context.
  FakeTask task(const FakeStream& stream, std::string what) const;
  CUresult finish(const FakeWorkPointer& work);
  /// Checks a call that captures allow only in relaxed mode: spoils the open captures that do not.
  std::optional<CUresult> check_in_capture();

  /// Whether [pointer, pointer + size) lies in one allocation. If not, that is a fault.
  bool is_memory(CUdeviceptr pointer, std::size_t size, const char* what);
  bool is_pinned(const void* pointer) const;
  CUresult allocate(CUdeviceptr* pointer, std::size_t size, int gpu, FakePool* pool);
  void release(CUdeviceptr pointer);
  std::size_t used(int gpu) const;
  /// The demand of a copy. `on_sms`: it is within a GPU, and no copy engine does it.
  FakeDemand copy_time(const FakeTask& task, std::size_t size, bool on_sms) const;

  const FakeOptions options;
  const int generation;  ///< Counts the fake drivers of this process.
  mutable std::mutex mutex;
  CudaDriver driver;
  FakeKernels kernels;
  std::map<std::string, std::uint64_t> durations;
  std::map<std::string, int, std::less<>> calls;
  std::multimap<std::string, PlantedFailure, std::less<>> planted;
  std::optional<CUresult> lost;
  std::vector<std::string> faults;
  std::vector<FakeExecution> executions;

  const std::shared_ptr<FakeWorks> works;
  std::size_t lanes = 0;
  std::vector<std::unique_ptr<FakeContext>> primaries;  ///< One for each GPU.
  FakeObjects<FakeContext> greens;
  FakeObjects<FakeDescription> descriptions;
  FakeObjects<FakeStream> streams;
  std::map<FakeContext*, std::unique_ptr<FakeStream>> default_streams;
  FakeObjects<FakeEvent> events;
  FakeObjects<FakeGraph> graphs;
  FakeObjects<FakeExec> execs;
  FakeObjects<FakeModule> modules;
  FakeObjects<FakeFunction> functions;
  FakeObjects<FakePool> pools;
  std::map<std::uintptr_t, FakeAllocation> allocations;
};

template <class T>
T* FakeCuda::State::find(FakeObjects<T>& objects, const void* handle, const char* what) {
  const auto found = objects.find(handle);
  if (found != objects.end()) return found->second.get();
  fault(std::string("bad_handle: no such ") + what, CUDA_ERROR_INVALID_HANDLE);
  return nullptr;
}

template <class Handle, class T>
Handle FakeCuda::State::put(FakeObjects<T>& objects, std::unique_ptr<T> object) {
  const Handle handle = reinterpret_cast<Handle>(object.get());
  objects.emplace(handle, std::move(object));
  return handle;
}

/// The state that the functions work on.
FakeCuda::State* fake_cuda_state();

/// Each of these puts its functions into the table.
void add_fake_device_calls(CudaDriver& driver);
void add_fake_memory_calls(CudaDriver& driver);
void add_fake_stream_calls(CudaDriver& driver);
void add_fake_graph_calls(CudaDriver& driver);

/// Begins a function of the fake driver: locks, counts the call, and returns a planted failure.
/// After it `s` is the state.
#define PLUMBLINE_FAKE_CALL(name)                        \
  FakeCuda::State* const state = fake_cuda_state();      \
  if (state == nullptr) return CUDA_ERROR_DEINITIALIZED; \
  FakeCuda::State& s = *state;                           \
  const std::lock_guard lock(s.mutex);                   \
  if (const auto answer = s.enter(#name)) return *answer

}  // namespace plumbline
