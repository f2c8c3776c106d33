// The layers of networks as kernels for a CUDA device.
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

/// One micro-batch on its way through one layer: samples outermost, rows in order, dense, in the
/// network's element type. Sizes are those of the layer's shapes times the batch. Lists are
/// parallel to those of NetworkLayer. All are pointers of the device, aligned to 16 bytes.
struct CudaCall {
  CUdeviceptr input = 0;   ///< Not for an embedding.
  CUdeviceptr ids = 0;     ///< For an embedding: an int32 token each.
  CUdeviceptr labels = 0;  ///< For a head: an int32 for each row.
  CUdeviceptr output = 0;  ///< Of a head: the loss of each sample, fp32.
  std::vector<CUdeviceptr> kept;
  std::vector<CUdeviceptr> left;
  std::vector<CUdeviceptr> parameters;
  std::vector<CUdeviceptr>
      gradients;  ///< Of the parameters: W (I where `with_input`) adds to them.
  /// Of a head: the weight of each sample's loss, fp32.
  CUdeviceptr output_gradient = 0;
  CUdeviceptr input_gradient = 0;  ///< 0 = it is not wanted (the first layer).
};

/// The kernels of one layer for micro-batches of one size on one device. Calls only enqueue: no
/// allocation, no waiting, so that they can be captured into a graph. Scratch is its own, so its
/// calls stand on one stream. The same calls give the same bits.
class CudaLayer {
 public:
  virtual ~CudaLayer() = default;

  /// F: writes output and kept.
  virtual void forward(const CudaQueue& queue, const CudaCall& call) = 0;
  /// I: reads what F left, writes input_gradient and left.
  virtual void backward_input(const CudaQueue& queue, const CudaCall& call) = 0;
  /// W: reads what F and I left, adds to gradients. Nothing to do where the layer does not split.
  virtual void backward_weight(const CudaQueue& queue, const CudaCall& call) = 0;
};

/// Why the cuda backend does not run this network, if so: no head at the end.
std::optional<Diagnostic> check_for_cuda(const Network& network, const Mark& mark);

/// Allocates scratch and makes products ready. Requires: a layer that check_for_cuda lets pass,
/// the queue's context current. Errors: CudaError.
std::unique_ptr<CudaLayer> cuda_layer(const CudaQueue& queue, const NetworkLayer& layer,
                                      ElementType type, std::int64_t batch);

}  // namespace plumbline
