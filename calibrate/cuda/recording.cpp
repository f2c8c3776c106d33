// Capture, instantiation. SPDX-License-Identifier: MIT
#include "calibrate/cuda/recording.h"

#include <stdexcept>

namespace plumbline {
namespace {

/// What a stream is given goes into a graph while this lives. It ends at once where something
/// throws: this thread can free no memory, of no device, while it is open.
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

bool CudaLaunching::try_to(const CudaDriver& driver, const std::function<void()>& record) {
  try {
    record();
    return true;
  } catch (const std::runtime_error& error) {  // the driver's, or of a library that it failed
    if (driver.cuCtxSynchronize() != CUDA_SUCCESS) throw;
    why_not = error.what();
  }
  replays = false;
  return false;
}

}  // namespace plumbline
