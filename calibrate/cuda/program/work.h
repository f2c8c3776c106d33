// The work of a program's steps on CUDA devices.
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

/// Allocates before the first iteration; after that it only enqueues.
class CudaWork {
 public:
  virtual ~CudaWork() = default;

  /// Allocates and fills the data of a slot. Requires: the slot's context is current, here and
  /// below. Errors: CudaError.
  virtual void prepare(std::uint32_t slot) = 0;

  /// Enqueues the step without its waits. Copies and sums go on `stream`, whose context is current;
  /// all else goes on the compute stream. In iterations of the same phase it is the same work on
  /// the same memory, so it can be recorded. Errors: CudaError.
  virtual void enqueue(const CudaStep& step, CUstream stream) = 0;
  /// Enqueues steps that begin together, each on its own stream. May change the current context.
  /// Errors: NcclError.
  virtual void enqueue_together(std::span<const CudaStep> /*steps*/,
                                const std::vector<CUstream>& /*streams*/) {}

  /// Makes the results of an iteration ready for the next one.
  virtual void end_iteration() {}
  /// 0, or 1 in every second iteration where versions of weights change places.
  virtual std::uint32_t phase() const { return 0; }

  // Results of training, if the work trains.

  /// Enqueues the copy of an iteration's losses to the host, on the compute stream.
  virtual void bring_losses(std::uint32_t /*slot*/) {}
  /// The mean loss over all samples. Requires: the copies of bring_losses have ended.
  virtual std::optional<double> mean_loss() const { return std::nullopt; }
  /// The newest weights of a stage, from its first device. Waits for them.
  virtual std::vector<float> parameters(std::uint32_t /*stage*/) { return {}; }
  /// Bytes allocated for the tensors that the simulated memory counts: weights, gradients,
  /// optimizer state, activations, buffers.
  virtual std::optional<std::size_t> allocated(std::uint32_t /*slot*/) const {
    return std::nullopt;
  }
};

}  // namespace plumbline
