// The parts of CUDA layers.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "calibrate/cuda/driver/queue.h"
#include "calibrate/cuda/driver/scratch.h"
#include "calibrate/cuda/layers/layer.h"
#include "calibrate/cuda/libraries/builtin_kernels.h"
#include "calibrate/cuda/libraries/gemm.h"
#include "calibrate/training/layer_slots.h"
#include "models/network/network.h"

namespace plumbline::cuda {

/// The arguments of each kind of layer when it is made.
struct LayerSite {
  const CudaQueue& queue;  ///< The layer runs on its device.
  const NetworkLayer& layer;
  ElementType type;
  std::int64_t batch;

  std::int64_t input_elements() const { return batch * layer.input.elements(); }
  /// The input as rows: the last extent is the columns, all others are rows.
  Rows rows() const {
    const std::int64_t columns = layer.input.extents.back();
    return {input_elements() / columns, columns};
  }
  CudaScratch scratch(std::int64_t elements) const;
  CudaScratch fp32_scratch(std::int64_t floats) const;
};

/// The tensor at a slot, or 0 where the layer has none.
inline CUdeviceptr at_or_none(const std::vector<CUdeviceptr>& list, std::size_t slot) {
  return slot == kNoSlot ? 0 : list[slot];
}

/// The input `x` of a norm and the moments that it keeps.
inline Normed normed(const CudaCall& call, CUdeviceptr x, const NormSlots& slots) {
  return {x, at_or_none(call.kept, slots.mean), call.kept[slots.rstd]};
}

/// The address `elements` elements behind a pointer.
inline CUdeviceptr advanced(CUdeviceptr data, std::int64_t elements, ElementType type) {
  return data + static_cast<CUdeviceptr>(elements * bytes_of(type));
}

/// Prepares a product for a later multiply(). The operands' pointers are replaced by temporary ones
/// of the same alignment, at most 16 bytes. In all else it is the product that multiply() will see.
void prepare_gemm(const LayerSite& site, CudaGemm product);

/// The dense layer y = x W^T + b, with x [rows, inputs] and W [outputs, inputs].
class Dense {
 public:
  Dense(ElementType type, std::int64_t rows, std::int64_t inputs, std::int64_t outputs)
      : type_(type), rows_(rows), inputs_(inputs), outputs_(outputs) {}

  /// Prepares the products of all passes. `bias`: whether forward() gets a bias or a skip.
  void prepare(const LayerSite& site, bool bias) const;
  /// Prepares only the product of weight_gradient().
  void prepare_weight(const LayerSite& site) const { prepare_gemm(site, weight_gemm()); }

  /// Computes y. `bias` = 0 means no bias. The skip [rows, outputs] is added unless it is 0.
  void forward(const CudaQueue& queue, CUdeviceptr y, CUdeviceptr x, CUdeviceptr weight,
               CUdeviceptr bias, CUdeviceptr skip = 0) const;
  void input_gradient(const CudaQueue& queue, CUdeviceptr x_gradient, CUdeviceptr y_gradient,
                      CUdeviceptr weight) const;
  /// Adds to the gradient.
  void weight_gradient(const CudaQueue& queue, CUdeviceptr weight_gradient, CUdeviceptr y_gradient,
                       CUdeviceptr x) const;
  /// Adds to the gradient, unless that is 0. `partial` is scratch of partial_floats(output())
  /// floats.
  void bias_gradient(const CudaQueue& queue, CUdeviceptr bias_gradient, CUdeviceptr y_gradient,
                     CUdeviceptr partial) const {
    if (bias_gradient == 0) return;
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

/// A layer norm or an rms norm, by itself or in a block.
class RowNorm {
 public:
  RowNorm(const NormSlots& slots, ElementType type, const Rows& rows)
      : slots_(slots), type_(type), rows_(rows) {}

  void forward(const CudaQueue& queue, const CudaCall& call, CUdeviceptr output) const {
    layer_norm(queue, type_, output, normed(call, call.input, slots_),
               call.parameters[slots_.scale], at_or_none(call.parameters, slots_.shift), rows_);
  }
  /// Adds `skip` unless it is 0. No work if the gradient is not wanted.
  void backward_input(const CudaQueue& queue, const CudaCall& call, CUdeviceptr output_gradient,
                      CUdeviceptr skip) const {
    if (call.input_gradient == 0) return;
    layer_norm_input_gradient(queue, type_, call.input_gradient, output_gradient, skip,
                              normed(call, call.input, slots_), call.parameters[slots_.scale],
                              rows_);
  }
  /// `partial` is scratch of partial_floats(rows) floats.
  void backward_weight(const CudaQueue& queue, const CudaCall& call, CUdeviceptr output_gradient,
                       CUdeviceptr partial) const {
    add_scale_gradient(queue, type_, call.gradients[slots_.scale], output_gradient,
                       normed(call, call.input, slots_), rows_, partial);
    if (slots_.shift != kNoSlot)
      add_column_sums(queue, type_, call.gradients[slots_.shift], output_gradient, rows_, partial);
  }

 private:
  NormSlots slots_;
  ElementType type_;
  Rows rows_;
};

/// The norm at the start of a block, with tensors of its own.
class BlockNorm {
 public:
  BlockNorm(const BlockNormSlots& slots, ElementType type, const Rows& rows)
      : slots_(slots), norm_(slots.norm, type, rows) {}

  CUdeviceptr output(const CudaCall& call) const { return call.kept[slots_.output]; }
  CUdeviceptr output_gradient(const CudaCall& call) const {
    return call.left[slots_.output_gradient];
  }
  void forward(const CudaQueue& queue, const CudaCall& call) const {
    norm_.forward(queue, call, output(call));
  }
  /// As RowNorm::backward_input.
  void backward_input(const CudaQueue& queue, const CudaCall& call, CUdeviceptr skip) const {
    norm_.backward_input(queue, call, output_gradient(call), skip);
  }
  void backward_weight(const CudaQueue& queue, const CudaCall& call, CUdeviceptr partial) const {
    norm_.backward_weight(queue, call, output_gradient(call), partial);
  }

 private:
  BlockNormSlots slots_;
  RowNorm norm_;
};

// The kinds of layers.

std::unique_ptr<CudaLayer> make_layer(const Linear& settings, const LayerSite& site);
std::unique_ptr<CudaLayer> make_layer(const Relu& settings, const LayerSite& site);
std::unique_ptr<CudaLayer> make_layer(const Gelu& settings, const LayerSite& site);
std::unique_ptr<CudaLayer> make_layer(const Flatten& settings, const LayerSite& site);
std::unique_ptr<CudaLayer> make_layer(const LayerNorm& settings, const LayerSite& site);
std::unique_ptr<CudaLayer> make_layer(const RmsNorm& settings, const LayerSite& site);
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
