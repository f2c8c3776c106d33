// What the steps of a program do on CUDA devices.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "calibrate/cuda/program/program.h"

namespace plumbline {

/// Allocates before the first iteration, and then only enqueues.
class CudaWork {
 public:
  virtual ~CudaWork() = default;

  /// Allocates and fills what stands on a slot. Requires: its context is current, here and below.
  /// Errors: CudaError.
  virtual void prepare(std::uint32_t slot) = 0;

  /// Enqueues the step, without its waits: copies and sums on `stream`, whose context is current,
  /// all else on the compute stream. In iterations of the same phase it is the same work on the
  /// same memory, so that it can be recorded. Errors: CudaError.
  virtual void enqueue(const CudaStep& step, CUstream stream) = 0;
  /// The same of steps that begin together, each on its own stream; another context may be current
  /// behind it. Errors: NcclError.
  virtual void enqueue_together(std::span<const CudaStep> /*steps*/,
                                const std::vector<CUstream>& /*streams*/) {}

  /// What one iteration has made is there for the next.
  virtual void end_iteration() {}
  /// 0, or 1 in every second iteration where versions of weights change places.
  virtual std::uint32_t phase() const { return 0; }

  // What can be learnt, where something is.

  /// Enqueued on the compute stream: the losses of an iteration come to the host.
  virtual void bring_losses(std::uint32_t /*slot*/) {}
  /// The mean over all samples. Requires: what bring_losses enqueued has ended.
  virtual std::optional<double> mean_loss() const { return std::nullopt; }
  /// The newest weights of a stage, of its first device. Waits for them.
  virtual std::vector<float> parameters(std::uint32_t /*stage*/) { return {}; }
  /// Bytes that were allocated for the tensors that the books count: weights, gradients, optimizer
  /// state, activations, buffers.
  virtual std::optional<std::size_t> allocated(std::uint32_t /*slot*/) const {
    return std::nullopt;
  }
};

}  // namespace plumbline
