// Capture, instantiation.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/driver/recording.h"

#include <stdexcept>
#include <utility>

namespace plumbline {
namespace {

/// Captures a stream's work into a graph while this lives. An exception ends the capture at once:
/// while it is open, this thread cannot free memory of any device.
class Capture {
 public:
  Capture(const CudaDriver& driver, CUstream stream) : driver_(driver), stream_(stream) {
    PLUMBLINE_CUDA(driver_, cuStreamBeginCapture, stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  }
  ~Capture() {
    CUgraph graph = nullptr;
    if (is_open_) driver_.cuStreamEndCapture(stream_, &graph);
    if (graph != nullptr) driver_.cuGraphDestroy(graph);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  CUgraph end() {
    CUgraph graph = nullptr;
    PLUMBLINE_CUDA(driver_, cuStreamEndCapture, stream_, &graph);
    is_open_ = false;
    return graph;
  }

 private:
  const CudaDriver& driver_;
  CUstream stream_;
  bool is_open_ = true;
};

}  // namespace

CudaRecording::CudaRecording(const CudaDriver& driver, CUstream stream,
                             const std::function<void()>& enqueue)
    : driver_(&driver) {
  CUgraph captured = nullptr;
  {
    Capture capture(driver, stream);
    enqueue();
    captured = capture.end();
  }
  const CUresult result = driver.cuGraphInstantiate(&graph_, captured, 0);
  driver.cuGraphDestroy(captured);
  if (result != CUDA_SUCCESS) graph_ = nullptr;
  check_cuda(driver, "cuGraphInstantiate", result);
  try {
    PLUMBLINE_CUDA(driver, cuGraphUpload, graph_, stream);  // not at its first launch
  } catch (...) {
    driver.cuGraphExecDestroy(graph_);
    throw;
  }
}

std::optional<std::string> why_not_run(const CudaDriver& driver,
                                       const std::function<void()>& work) {
  try {
    work();
    return std::nullopt;
  } catch (const std::runtime_error& error) {
    if (driver.cuCtxSynchronize() != CUDA_SUCCESS) throw;
    return error.what();
  }
}

bool CudaLaunching::try_to(const CudaDriver& driver, const std::function<void()>& record) {
  std::optional<std::string> failure = why_not_run(driver, record);
  if (!failure) return true;
  why_not = *std::move(failure);
  replays = false;
  return false;
}

}  // namespace plumbline
