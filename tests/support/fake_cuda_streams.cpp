// The fake driver's streams, events and launches.
//
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstring>

#include "tests/support/fake_cuda_state.h"

namespace plumbline {
namespace {

CUresult make_stream(FakeCuda::State& s, CUstream* stream, FakeContext* context) {
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  auto made = std::make_unique<FakeStream>();
  made->context = context;
  made->lane = s.lanes++;
  *stream = s.put<CUstream>(s.streams, std::move(made));
  return CUDA_SUCCESS;
}

/// The error if the host may not query the stream now, as it is being captured.
std::optional<CUresult> check_captured(FakeCuda::State& s, const FakeStream& stream) {
  if (stream.capture == nullptr) return std::nullopt;
  stream.capture->spoilt = true;
  return s.fault("capture: the host looks at a stream", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

CUresult ask(FakeCuda::State& s, const FakeWorkPointer& work) {
  if (work != nullptr && !work->done) s.works->step();
  if (s.lost) return *s.lost;
  if (work != nullptr && !work->done) return CUDA_ERROR_NOT_READY;
  if (work != nullptr) s.works->now = std::max(s.works->now, work->end);
  return CUDA_SUCCESS;
}

/// A task that takes this time and does nothing.
FakeTask timed_task(FakeCuda::State& s, const FakeStream& stream, std::uint64_t nanoseconds) {
  FakeTask task = s.task(stream, "");
  if (nanoseconds == 0) return task;
  task.act = [nanoseconds](const FakeTask&, std::uint64_t) { return FakeDemand(nanoseconds); };
  return task;
}

void add_nodes(std::vector<std::size_t>& to, const std::vector<std::size_t>& nodes) {
  for (const std::size_t node : nodes)
    if (std::find(to.begin(), to.end(), node) == to.end()) to.push_back(node);
}

/// A wait by a stream under capture, or for a captured event.
CUresult wait_in_capture(FakeCuda::State& s, FakeStream& stream, const FakeEvent& event) {
  if (event.capture == nullptr) {
    stream.capture->spoilt = true;
    return s.fault("capture: a wait for what is not captured", CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  }
  if (!event.capture->open) return CUDA_ERROR_CAPTURED_EVENT;
  if (stream.capture == nullptr) {
    stream.capture = event.capture;
    stream.tail.clear();
  }
  if (stream.capture != event.capture) return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  add_nodes(stream.tail, event.nodes);
  return CUDA_SUCCESS;
}

void add_stream_calls(CudaDriver& driver) {
  driver.cuStreamCreateWithPriority = [](CUstream* stream, unsigned, int) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuStreamCreateWithPriority);
    return make_stream(s, stream, s.current());
  };
  driver.cuGreenCtxStreamCreate = [](CUstream* stream, CUgreenCtx handle, unsigned flags,
                                     int) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuGreenCtxStreamCreate);
    if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    return make_stream(s, stream, s.find(s.greens, handle, "green context"));
  };
  driver.cuStreamDestroy = [](CUstream handle) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuStreamDestroy);
    const FakeStream* const stream = s.find(s.streams, handle, "stream");
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture != nullptr) stream->capture->spoilt = true;
    s.streams.erase(handle);  // enqueued work still runs
    return CUDA_SUCCESS;
  };
  driver.cuStreamSynchronize = [](CUstream handle) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuStreamSynchronize);
    const FakeStream* const stream = s.stream(handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (const auto refused = check_captured(s, *stream)) return *refused;
    return s.finish(stream->last);
  };
  driver.cuStreamQuery = [](CUstream handle) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuStreamQuery);
    const FakeStream* const stream = s.stream(handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (const auto refused = check_captured(s, *stream)) return *refused;
    return ask(s, stream->last);
  };
  driver.cuStreamWaitEvent = [](CUstream on, CUevent handle, unsigned flags) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuStreamWaitEvent);
    FakeStream* const stream = s.stream(on);
    const FakeEvent* const event = s.find(s.events, handle, "event");
    if (stream == nullptr || event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (flags != 0) return CUDA_ERROR_NOT_SUPPORTED;
    if (event->capture == nullptr && event->work == nullptr)
      return s.fault("wait_before_record: an event that no stream has recorded", CUDA_SUCCESS);
    if (stream->capture != nullptr || event->capture != nullptr)
      return wait_in_capture(s, *stream, *event);
    FakeTask task = timed_task(s, *stream, s.options.wait_nanoseconds);
    stream->last = s.works->add(std::move(task), stream->lane, {stream->last, event->work});
    return CUDA_SUCCESS;
  };
}

void add_event_calls(CudaDriver& driver) {
  driver.cuEventCreate = [](CUevent* event, unsigned flags) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuEventCreate);
    FakeContext* const context = s.current();
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    auto made = std::make_unique<FakeEvent>();
    made->context = context;
    made->timed = (flags & CU_EVENT_DISABLE_TIMING) == 0;
    *event = s.put<CUevent>(s.events, std::move(made));
    return CUDA_SUCCESS;
  };
  driver.cuEventDestroy = [](CUevent handle) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuEventDestroy);
    if (s.find(s.events, handle, "event") == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    s.events.erase(handle);
    return CUDA_SUCCESS;
  };
  driver.cuEventRecord = [](CUevent handle, CUstream on) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuEventRecord);
    FakeEvent* const event = s.find(s.events, handle, "event");
    FakeStream* const stream = s.stream(on);
    if (event == nullptr || stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (event->context != stream->context)
      return s.fault("wrong_context: an event recorded in a stream of another",
                     CUDA_ERROR_INVALID_HANDLE);
    event->work = nullptr;
    event->capture = stream->capture;
    event->nodes = stream->tail;
    if (stream->capture != nullptr) return CUDA_SUCCESS;
    FakeTask task = timed_task(s, *stream, event->timed ? s.options.event_nanoseconds : 0);
    stream->last = s.works->add(std::move(task), stream->lane, {stream->last});
    event->work = stream->last;
    return CUDA_SUCCESS;
  };
  driver.cuEventSynchronize = [](CUevent handle) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuEventSynchronize);
    const FakeEvent* const event = s.find(s.events, handle, "event");
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return event->capture != nullptr ? CUDA_ERROR_CAPTURED_EVENT : s.finish(event->work);
  };
  driver.cuEventQuery = [](CUevent handle) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuEventQuery);
    const FakeEvent* const event = s.find(s.events, handle, "event");
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return event->capture != nullptr ? CUDA_ERROR_CAPTURED_EVENT : ask(s, event->work);
  };
  driver.cuEventElapsedTime = [](float* milliseconds, CUevent from, CUevent to) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuEventElapsedTime);
    const FakeEvent* const begin = s.find(s.events, from, "event");
    const FakeEvent* const end = s.find(s.events, to, "event");
    if (begin == nullptr || end == nullptr || !begin->timed || !end->timed ||
        begin->work == nullptr || end->work == nullptr)
      return CUDA_ERROR_INVALID_HANDLE;
    if (!begin->work->done || !end->work->done) return CUDA_ERROR_NOT_READY;
    *milliseconds = static_cast<float>(
        (static_cast<double>(end->work->end) - static_cast<double>(begin->work->end)) * 1e-6);
    return CUDA_SUCCESS;
  };
}

/// The task of a launch, with copies of its arguments.
FakeTask launch_task(FakeCuda::State& s, const FakeStream& stream, const FakeFunction& function,
                     const FakeLaunch& given) {
  std::vector<std::vector<unsigned char>> values;
  for (std::size_t i = 0; i < function.kernel.sizes.size(); ++i) {
    const auto* const first = static_cast<const unsigned char*>(given.arguments[i]);
    values.emplace_back(first, first + function.kernel.sizes[i]);
  }
  FakeTask task = s.task(stream, function.name);
  task.is_kernel = true;
  if (function.kernel.holds != nullptr) {
    task.holds = [values, launch = given, holds = function.kernel.holds]() mutable {
      std::vector<void*> pointers;
      for (auto& value : values) pointers.push_back(value.data());
      launch.arguments = pointers.data();
      return holds(launch);
    };
  }
  task.act = [&s, values = std::move(values), launch = given, kernel = function.kernel](
                 const FakeTask& now, std::uint64_t begin) mutable {
    std::vector<void*> pointers;
    for (auto& value : values) pointers.push_back(value.data());
    launch.arguments = pointers.data();
    launch.first_sm = now.first_sm;
    launch.sms = now.sms;
    launch.begin = begin;
    const auto set = s.durations.find(now.what);
    FakeDemand demand = s.options.kernel_nanoseconds;
    if (set != s.durations.end()) {
      demand = set->second;
    } else if (kernel.duration != nullptr) {
      demand = kernel.duration(launch);
    } else if (s.options.kernel_demand != nullptr) {
      demand = s.options.kernel_demand(now.what, launch);
    }
    const bool computes =
        s.options.is_computed == nullptr || s.options.is_computed(now.what, launch);
    if (kernel.run != nullptr && computes) kernel.run(launch);
    return demand;
  };
  return task;
}

void add_launch_calls(CudaDriver& driver) {
  driver.cuLaunchKernel = [](CUfunction handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                             unsigned block_x, unsigned block_y, unsigned block_z,
                             unsigned shared_bytes, CUstream on, void** arguments,
                             void** extra) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuLaunchKernel);
    const FakeFunction* const function = s.find(s.functions, handle, "function");
    FakeStream* const stream = s.stream(on);
    if (function == nullptr || stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (function->module->context != stream->context || s.current() != stream->context)
      return s.fault("wrong_context: " + function->name +
                         " launched where its module, its stream and the thread differ",
                     CUDA_ERROR_INVALID_HANDLE);
    FakeLaunch launch{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
    const std::uint64_t threads = std::uint64_t{block_x} * block_y * block_z;
    if (extra != nullptr || std::uint64_t{grid_x} * grid_y * grid_z == 0 || threads == 0 ||
        threads > 1024 || grid_x > 0x7FFFFFFF || grid_y > 65535 || grid_z > 65535 || block_z > 64 ||
        shared_bytes > function->max_shared)
      return s.fault("bad_launch: " + function->name, CUDA_ERROR_INVALID_VALUE);
    launch.arguments = arguments;
    return s.enqueue(*stream, launch_task(s, *stream, *function, launch));
  };
}

}  // namespace

FakeStream* FakeCuda::State::stream(CUstream handle) {
  if (handle != nullptr) return find(streams, handle, "stream");
  fault("default_stream: work that is on no stream", CUDA_SUCCESS);
  FakeContext* const context = current();
  if (context == nullptr) return nullptr;
  auto& stream = default_streams[context];
  if (stream == nullptr) {
    stream = std::make_unique<FakeStream>();
    stream->context = context;
    stream->lane = lanes++;
  }
  return stream.get();
}

FakeTask FakeCuda::State::task(const FakeStream& stream, std::string what) const {
  FakeTask task;
  task.what = std::move(what);
  task.gpu = stream.context->gpu;
  task.first_sm = options.leaves_partitions ? 0 : stream.context->first_sm;
  task.sms = options.leaves_partitions ? options.gpus[static_cast<std::size_t>(task.gpu)].sms
                                       : stream.context->sms;
  return task;
}

CUresult FakeCuda::State::enqueue(FakeStream& stream, FakeTask task) {
  if (stream.capture == nullptr) {
    stream.last = works->add(std::move(task), stream.lane, {stream.last});
    return CUDA_SUCCESS;
  }
  if (stream.capture->spoilt) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  stream.capture->nodes.push_back({std::move(task), stream.lane, stream.tail});
  stream.tail = {stream.capture->nodes.size() - 1};
  return CUDA_SUCCESS;
}

void add_fake_stream_calls(CudaDriver& driver) {
  add_stream_calls(driver);
  add_event_calls(driver);
  add_launch_calls(driver);
}

}  // namespace plumbline
