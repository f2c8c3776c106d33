// The fake driver's graphs: captured from streams, launched any number of times.
//
// SPDX-License-Identifier: MIT
#include <algorithm>

#include "tests/support/fake_cuda_state.h"

namespace plumbline {
namespace {

/// Whether all nodes captured from the other streams come before the end of `origin`.
bool is_joined(const FakeCuda::State& s, const FakeStream& origin) {
  const auto& nodes = origin.capture->nodes;
  std::vector<bool> before_end(nodes.size());
  for (const std::size_t node : origin.tail) before_end[node] = true;
  for (std::size_t node = nodes.size(); node-- > 0;) {
    if (!before_end[node]) continue;
    for (const std::size_t before : nodes[node].after) before_end[before] = true;
  }
  return std::all_of(s.streams.begin(), s.streams.end(), [&](const auto& entry) {
    const FakeStream& stream = *entry.second;
    return stream.capture != origin.capture ||
           std::all_of(stream.tail.begin(), stream.tail.end(),
                       [&](std::size_t node) { return before_end[node]; });
  });
}

CUresult end_capture(FakeCuda::State& s, FakeStream& origin, CUgraph* graph) {
  const std::shared_ptr<FakeCapture> capture = origin.capture;
  CUresult result = CUDA_SUCCESS;
  if (capture->spoilt) {
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  } else if (!is_joined(s, origin)) {
    result = s.fault("capture: a stream that was forked is not joined",
                     CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  }
  capture->open = false;
  for (const auto& [handle, stream] : s.streams) {
    if (stream->capture != capture) continue;
    stream->capture = nullptr;
    stream->began_capture = false;
    stream->tail.clear();
  }
  *graph = nullptr;
  if (result != CUDA_SUCCESS) return result;
  auto made = std::make_unique<FakeGraph>();
  made->capture = capture;
  *graph = s.put<CUgraph>(s.graphs, std::move(made));
  return CUDA_SUCCESS;
}

/// Puts all nodes between the stream's earlier and later work.
void launch(FakeCuda::State& s, FakeExec& exec, FakeStream& stream) {
  FakeTask by_itself = s.task(stream, "");
  by_itself.act = [takes = s.options.graph_nanoseconds](const FakeTask&, std::uint64_t) {
    return FakeDemand(takes);
  };
  const FakeWorkPointer begin =
      s.works->add(std::move(by_itself), stream.lane, {stream.last, exec.last});
  std::vector<FakeWorkPointer> works;
  for (const FakeNode& node : exec.nodes) {
    FakeTask task = node.task;
    task.in_graph = true;
    if (s.options.graphs_leave_partitions) {
      task.first_sm = 0;
      task.sms = s.options.gpus[static_cast<std::size_t>(task.gpu)].sms;
    }
    std::vector<FakeWorkPointer> before{begin};
    for (const std::size_t earlier : node.after) before.push_back(works[earlier]);
    works.push_back(s.works->add(std::move(task), node.lane, before));
  }
  works.push_back(begin);
  stream.last = s.works->add(s.task(stream, ""), stream.lane, works);
  exec.last = stream.last;
}

}  // namespace

std::optional<CUresult> FakeCuda::State::check_in_capture() {
  bool any = false;
  for (const auto& [handle, stream] : streams) {
    if (!stream->began_capture) continue;
    FakeCapture& capture = *stream->capture;
    if (capture.mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
    if (capture.mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL &&
        capture.thread != std::this_thread::get_id())
      continue;
    capture.spoilt = true;
    any = true;
  }
  if (!any) return std::nullopt;
  return fault("capture: a call that is not allowed meanwhile",
               CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

void add_fake_graph_calls(CudaDriver& driver) {
  driver.cuStreamBeginCapture = [](CUstream handle, CUstreamCaptureMode mode) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuStreamBeginCapture);
    FakeStream* const stream = s.find(s.streams, handle, "stream");
    if (stream == nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    stream->capture = std::make_shared<FakeCapture>();
    stream->capture->mode = mode;
    stream->capture->thread = std::this_thread::get_id();
    stream->began_capture = true;
    stream->tail.clear();
    return CUDA_SUCCESS;
  };
  driver.cuStreamEndCapture = [](CUstream handle, CUgraph* graph) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuStreamEndCapture);
    FakeStream* const stream = s.find(s.streams, handle, "stream");
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    if (!stream->began_capture) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    return end_capture(s, *stream, graph);
  };
  driver.cuGraphInstantiate = [](CUgraphExec* exec, CUgraph handle,
                                 unsigned long long) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuGraphInstantiate);
    const FakeGraph* const graph = s.find(s.graphs, handle, "graph");
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto made = std::make_unique<FakeExec>();
    made->nodes = graph->capture->nodes;
    *exec = s.put<CUgraphExec>(s.execs, std::move(made));
    return CUDA_SUCCESS;
  };
  driver.cuGraphUpload = [](CUgraphExec handle, CUstream on) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuGraphUpload);
    const bool both =
        s.find(s.execs, handle, "executable graph") != nullptr && s.stream(on) != nullptr;
    return both ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  };
  driver.cuGraphLaunch = [](CUgraphExec handle, CUstream on) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuGraphLaunch);
    FakeExec* const exec = s.find(s.execs, handle, "executable graph");
    FakeStream* const stream = s.stream(on);
    if (exec == nullptr || stream == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    launch(s, *exec, *stream);
    return CUDA_SUCCESS;
  };
  driver.cuGraphDestroy = [](CUgraph handle) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuGraphDestroy);
    return s.graphs.erase(handle) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  };
  driver.cuGraphExecDestroy = [](CUgraphExec handle) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuGraphExecDestroy);
    return s.execs.erase(handle) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  };
}

}  // namespace plumbline
