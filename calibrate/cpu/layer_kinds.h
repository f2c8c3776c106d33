// Common parts of all kinds of layers on the CPU, and the functions that make them.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "calibrate/cpu/kernels.h"
#include "calibrate/cpu/layer.h"
#include "calibrate/training/layer_slots.h"
#include "models/network/network.h"

namespace plumbline {

/// The view that each kind has of its layer.
template <class Kind>
struct CpuLayerOf {
  const Kind& settings;
  const NetworkLayer& layer;
  std::int64_t batch;

  std::int64_t input_elements() const { return batch * layer.input.elements(); }
  std::int64_t output_elements() const { return batch * layer.output.elements(); }
  /// All extents of the input but the last are rows.
  cpu::Rows rows() const {
    const std::int64_t columns = layer.input.extents.back();
    return {input_elements() / columns, columns};
  }
};

/// The tensor at a slot, or null where the layer has none.
template <class Pointer>
Pointer at_or_null(const std::vector<Pointer>& list, std::size_t slot) {
  return slot == kNoSlot ? nullptr : list[slot];
}

/// The input `x` of a norm, with the moments that it keeps.
inline cpu::Normed normed(const CpuCall& call, const float* x, const NormSlots& slots) {
  return {x, call.kept[slots.mean], call.kept[slots.rstd]};
}
inline cpu::ScaleAndShift affine(const CpuCall& call, const NormSlots& slots) {
  return {call.parameters[slots.scale], call.parameters[slots.shift]};
}
inline cpu::ScaleAndShiftGradients affine_gradients(const CpuCall& call, const NormSlots& slots) {
  return {call.gradients[slots.scale], call.gradients[slots.shift]};
}

// simple_layers.cpp
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<Linear>& made);
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<Relu>& made);
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<Gelu>& made);
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<LayerNorm>& made);
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<RmsNorm>& made);
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<Lstm>& made);

// transformer_layers.cpp
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<AttentionBlock>& made);
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<MlpBlock>& made);
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<Embedding>& made);
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<Head>& made);

// image_layers.cpp
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<Conv2d>& made);
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<MaxPool>& made);
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<BatchNorm>& made);
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<Flatten>& made);
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<ResidualBlock>& made);

}  // namespace plumbline
