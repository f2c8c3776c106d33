// The layers of networks as fp32 kernels for one CPU core.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/network/network.h"

namespace plumbline {

/// One micro-batch on its way through one layer. Tensors are dense, samples outermost, rows in
/// order. Their sizes are the layer's shapes times the batch. Lists are parallel to those of
/// NetworkLayer.
struct CpuCall {
  const float* input = nullptr;          ///< Not for an embedding.
  const std::int32_t* ids = nullptr;     ///< Token ids, for an embedding.
  const std::int32_t* labels = nullptr;  ///< For a head: one for each row.
  float* output = nullptr;               ///< For a head: the loss of each sample.
  std::vector<float*> kept;
  std::vector<float*> left;
  std::vector<const float*> parameters;
  std::vector<float*> gradients;  ///< Of the parameters; W (or I for `with_input`) adds to them.
  /// For a head: the weight of each sample's loss.
  const float* output_gradient = nullptr;
  float* input_gradient = nullptr;  ///< Null = not wanted (the first layer).
};

/// The kernels of one layer for micro-batches of one size. Every thread that uses them calls
/// use_one_thread() of gemm.h first. It holds scratch memory, so one thread at a time uses it. The
/// same call gives the same bits.
class CpuLayer {
 public:
  virtual ~CpuLayer() = default;

  /// F: writes output and kept.
  virtual void forward(const CpuCall& call) = 0;
  /// I: reads the results of F, writes input_gradient and left.
  virtual void backward_input(const CpuCall& call) = 0;
  /// W: reads the results of F and I, adds to gradients. It does nothing where the layer does not
  /// split.
  virtual void backward_weight(const CpuCall& call) = 0;
};

/// Requires: an fp32 network's layer, batch >= 1, a build with oneDNN.
std::unique_ptr<CpuLayer> cpu_layer(const NetworkLayer& layer, std::int64_t batch);

/// The library behind the kernels and its version: "oneDNN 2.6.3"; "" where the build has none.
std::string cpu_library();

}  // namespace plumbline
