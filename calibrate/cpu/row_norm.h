// The norm of each row, as a layer or at the start of a block.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "calibrate/cpu/layer_kinds.h"

namespace plumbline::cpu {

/// A layer norm, or an rms norm where the layer has no tensor for the mean.
class RowNorm {
 public:
  RowNorm(const NormSlots& slots, const Rows& rows) : slots_(slots), rows_(rows) {}

  void forward(const CpuCall& call, float* output) const {
    if (is_centred()) {
      layer_norm(output, call.kept[slots_.mean], call.kept[slots_.rstd], call.input,
                 affine(call, slots_), rows_);
    } else {
      rms_norm(output, call.kept[slots_.rstd], call.input, call.parameters[slots_.scale], rows_);
    }
  }
  /// Adds `skip` where there is one. It does nothing where the gradient is not wanted.
  void backward_input(const CpuCall& call, const float* output_gradient, const float* skip) const {
    if (call.input_gradient == nullptr) return;
    const float* scale = call.parameters[slots_.scale];
    if (is_centred()) {
      layer_norm_input_gradient(call.input_gradient, output_gradient, skip,
                                normed(call, call.input, slots_), scale, rows_);
    } else {
      rms_norm_input_gradient(call.input_gradient, output_gradient, skip, call.input,
                              call.kept[slots_.rstd], scale, rows_);
    }
  }
  void backward_weight(const CpuCall& call, const float* output_gradient) const {
    if (is_centred()) {
      layer_norm_parameter_gradients(affine_gradients(call, slots_), output_gradient,
                                     normed(call, call.input, slots_), rows_);
    } else {
      rms_norm_scale_gradient(call.gradients[slots_.scale], output_gradient, call.input,
                              call.kept[slots_.rstd], rows_);
    }
  }

 private:
  bool is_centred() const { return slots_.mean != kNoSlot; }

  NormSlots slots_;
  Rows rows_;
};

}  // namespace plumbline::cpu
