// Work that is recorded once and replayed as one graph.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "calibrate/cuda/driver/driver.h"

namespace plumbline {

/// A graph of the work of a stream: one launch for all its kernels. Moved, not copied.
class CudaRecording {
 public:
  CudaRecording() = default;
  /// Records the work that `enqueue` puts on the stream; none of it runs. Requires: `enqueue` frees
  /// and allocates no memory and waits for nothing; the stream's context is current, here and at
  /// destruction. Errors: CudaError; the errors of `enqueue`.
  CudaRecording(const CudaDriver& driver, CUstream stream, const std::function<void()>& enqueue);
  CudaRecording(CudaRecording&& other) noexcept
      : driver_(other.driver_), graph_(std::exchange(other.graph_, nullptr)) {}
  CudaRecording& operator=(CudaRecording&& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(graph_, other.graph_);
    return *this;
  }
  CudaRecording(const CudaRecording&) = delete;
  CudaRecording& operator=(const CudaRecording&) = delete;
  ~CudaRecording() {
    if (graph_ != nullptr) driver_->cuGraphExecDestroy(graph_);
  }

  explicit operator bool() const { return graph_ != nullptr; }
  /// Enqueues the whole graph. Errors: CudaError.
  void replay(CUstream stream) const { PLUMBLINE_CUDA(*driver_, cuGraphLaunch, graph_, stream); }

 private:
  const CudaDriver* driver_ = nullptr;
  CUgraphExec graph_ = nullptr;
};

/// Runs `work`. Returns its error message, from the driver or a library, if it fails and the
/// current context still works. Errors: the errors of `work` if the context no longer works, as
/// when a device is lost.
std::optional<std::string> why_not_run(const CudaDriver& driver, const std::function<void()>& work);

/// The way in which a backend launches the kernels of a pass: as one graph, or one by one.
struct CudaLaunching {
  bool replays = true;
  std::string why_not;  ///< A driver that cannot record, or graphs that leave their part of a GPU.

  /// Runs `record`. If it fails, returns false and no longer replays. Errors: as why_not_run.
  bool try_to(const CudaDriver& driver, const std::function<void()>& record);
};

}  // namespace plumbline
