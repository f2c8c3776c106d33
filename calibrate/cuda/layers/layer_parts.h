// What CUDA layers are put together from.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "calibrate/cuda/driver/queue.h"
#include "calibrate/cuda/driver/scratch.h"
#include "calibrate/cuda/layers/layer.h"
#include "calibrate/cuda/libraries/builtin_kernels.h"
#include "calibrate/cuda/libraries/gemm.h"
#include "models/network/network.h"

namespace plumbline::cuda {

/// What each kind sees of its layer when it is made.
struct LayerSite {
  const CudaQueue& queue;  ///< Whose device it is for.
  const NetworkLayer& layer;
  ElementType type;
  std::int64_t batch;

  std::int64_t input_elements() const { return batch * layer.input.elements(); }
  /// All extents of the input but the last are rows.
  Rows rows() const {
    const std::int64_t columns = layer.input.extents.back();
    return {input_elements() / columns, columns};
  }
  CudaScratch scratch(std::int64_t elements) const;
  CudaScratch fp32_scratch(std::int64_t floats) const;
};

// Tensors are found by their places in the lists of the layer: each kind gives its places the
// names, and the layer is held to them.

struct Names {
  std::vector<std::string_view> parameters{};
  std::vector<std::string_view> kept{};
  std::vector<std::string_view> left{};
};

void check_names(const NetworkLayer& layer, const Names& names);

/// The element of a list, or 0 where it is not there.
inline CUdeviceptr at_or_none(const std::vector<CUdeviceptr>& list, std::size_t i, bool there) {
  return there ? list[i] : 0;
}

/// `elements` behind a pointer.
inline CUdeviceptr advanced(CUdeviceptr data, std::int64_t elements, ElementType type) {
  return data + static_cast<CUdeviceptr>(elements * bytes_of(type));
}

/// Makes a product ready that a layer will ask for; its operands are made for the while of it.
/// Their pointers are replaced by others that are aligned alike, to 16 bytes at most; in all else
/// it is the product that multiply() will see.
void prepare_gemm(const LayerSite& site, CudaGemm product);

/// y = x W^T + b of x [rows, inputs] and W [outputs, inputs].
class Dense {
 public:
  Dense(ElementType type, std::int64_t rows, std::int64_t inputs, std::int64_t outputs)
      : type_(type), rows_(rows), inputs_(inputs), outputs_(outputs) {}

  /// Makes the products of all passes ready. `bias`: whether forward() gets one.
  void prepare(const LayerSite& site, bool bias) const;
  /// Only that of weight_gradient().
  void prepare_weight(const LayerSite& site) const { prepare_gemm(site, weight_gemm()); }

  /// Without a bias where that is 0. The skip [rows, outputs] is added unless it is 0; it needs a
  /// bias beside it.
  void forward(const CudaQueue& queue, CUdeviceptr y, CUdeviceptr x, CUdeviceptr weight,
               CUdeviceptr bias, CUdeviceptr skip = 0) const;
  void input_gradient(const CudaQueue& queue, CUdeviceptr x_gradient, CUdeviceptr y_gradient,
                      CUdeviceptr weight) const;
  /// Adds to the gradient.
  void weight_gradient(const CudaQueue& queue, CUdeviceptr weight_gradient, CUdeviceptr y_gradient,
                       CUdeviceptr x) const;
  /// Adds to the gradient; `partial` is scratch of partial_floats(output()).
  void bias_gradient(const CudaQueue& queue, CUdeviceptr bias_gradient, CUdeviceptr y_gradient,
                     CUdeviceptr partial) const {
    add_column_sums(queue, type_, bias_gradient, y_gradient, output(), partial);
  }

  Rows output() const { return {rows_, outputs_}; }

 private:
  CudaGemm forward_gemm() const;
  CudaGemm input_gemm() const;
  CudaGemm weight_gemm() const;

  ElementType type_;
  std::int64_t rows_;
  std::int64_t inputs_;
  std::int64_t outputs_;
};

/// The norm at the start of a block: the first two parameters, and mean, rstd and output the first
/// three kept.
class BlockNorm {
 public:
  BlockNorm(ElementType type, const Rows& rows) : type_(type), rows_(rows) {}

  void forward(const CudaQueue& queue, const CudaCall& call) const {
    layer_norm(queue, type_, call.kept[2], normed(call), call.parameters[0], call.parameters[1],
               rows_);
  }
  /// Adds `skip` unless it is 0. Nothing to do where the gradient is not wanted.
  void backward_input(const CudaQueue& queue, const CudaCall& call, CUdeviceptr output_gradient,
                      CUdeviceptr skip) const {
    if (call.input_gradient == 0) return;
    layer_norm_input_gradient(queue, type_, call.input_gradient, output_gradient, skip,
                              normed(call), call.parameters[0], rows_);
  }
  /// `partial` is scratch of partial_floats(rows()).
  void backward_weight(const CudaQueue& queue, const CudaCall& call, CUdeviceptr output_gradient,
                       CUdeviceptr partial) const {
    add_scale_gradient(queue, type_, call.gradients[0], output_gradient, normed(call), rows_,
                       partial);
    add_column_sums(queue, type_, call.gradients[1], output_gradient, rows_, partial);
  }

  const Rows& rows() const { return rows_; }

 private:
  static Normed normed(const CudaCall& call) { return {call.input, call.kept[0], call.kept[1]}; }

  ElementType type_;
  Rows rows_;
};

// The kinds.

std::unique_ptr<CudaLayer> make_layer(const Linear& settings, const LayerSite& site);
std::unique_ptr<CudaLayer> make_layer(const Relu& settings, const LayerSite& site);
std::unique_ptr<CudaLayer> make_layer(const Gelu& settings, const LayerSite& site);
std::unique_ptr<CudaLayer> make_layer(const Flatten& settings, const LayerSite& site);
std::unique_ptr<CudaLayer> make_layer(const LayerNorm& settings, const LayerSite& site);
std::unique_ptr<CudaLayer> make_layer(const MlpBlock& settings, const LayerSite& site);
std::unique_ptr<CudaLayer> make_layer(const AttentionBlock& settings, const LayerSite& site);
std::unique_ptr<CudaLayer> make_layer(const Embedding& settings, const LayerSite& site);
std::unique_ptr<CudaLayer> make_layer(const Head& settings, const LayerSite& site);
std::unique_ptr<CudaLayer> make_layer(const Conv2d& settings, const LayerSite& site);
std::unique_ptr<CudaLayer> make_layer(const MaxPool& settings, const LayerSite& site);
std::unique_ptr<CudaLayer> make_layer(const BatchNorm& settings, const LayerSite& site);
std::unique_ptr<CudaLayer> make_layer(const ResidualBlock& settings, const LayerSite& site);
std::unique_ptr<CudaLayer> make_layer(const Lstm& settings, const LayerSite& site);

}  // namespace plumbline::cuda
