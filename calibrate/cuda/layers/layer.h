// Layers of networks as kernels for a CUDA device.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/diagnostic.h"
#include "calibrate/cuda/driver/queue.h"
#include "models/network/network.h"

namespace plumbline {

/// The tensors of one micro-batch in one layer: samples outermost, row-major, dense, in the
/// network's element type. Each size is that of the layer's shape times the batch. Lists are
/// parallel to those of NetworkLayer. All are device pointers, aligned to 16 bytes.
struct CudaCall {
  CUdeviceptr input = 0;   ///< Unused for an embedding.
  CUdeviceptr ids = 0;     ///< For an embedding: int32 tokens.
  CUdeviceptr labels = 0;  ///< For a head: one int32 per row.
  CUdeviceptr output = 0;  ///< For a head, the loss of each sample, fp32.
  std::vector<CUdeviceptr> kept;
  std::vector<CUdeviceptr> left;
  std::vector<CUdeviceptr> parameters;
  /// Gradients of the parameters: W adds to them (I where `with_input`).
  std::vector<CUdeviceptr> gradients;
  /// For a head, the weight of each sample's loss, fp32.
  CUdeviceptr output_gradient = 0;
  CUdeviceptr input_gradient = 0;  ///< 0 = not wanted (the first layer).
};

/// The kernels of one layer for micro-batches of one size on one device. Calls only enqueue: they
/// neither allocate nor wait, so they can be captured into a graph. The layer has its own scratch,
/// so its calls are on one stream. The same calls give the same bits.
class CudaLayer {
 public:
  virtual ~CudaLayer() = default;

  /// F: writes output and kept.
  virtual void forward(const CudaQueue& queue, const CudaCall& call) = 0;
  /// I: reads the results of F, writes input_gradient and left.
  virtual void backward_input(const CudaQueue& queue, const CudaCall& call) = 0;
  /// W: reads the results of F and I, adds to gradients. No work if the layer does not split.
  virtual void backward_weight(const CudaQueue& queue, const CudaCall& call) = 0;
};

/// The reason why the cuda backend refuses this network, if it does: no head at the end.
std::optional<Diagnostic> check_for_cuda(const Network& network, const Mark& mark);

/// Makes the kernels of a layer: allocates scratch and prepares products. Requires: a layer that
/// check_for_cuda accepts; the queue's context is current. Errors: CudaError.
std::unique_ptr<CudaLayer> cuda_layer(const CudaQueue& queue, const NetworkLayer& layer,
                                      ElementType type, std::int64_t batch);

}  // namespace plumbline
