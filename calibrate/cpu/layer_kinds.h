// What the kinds of layers on the CPU have in common, and the makers of each.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "calibrate/cpu/kernels.h"
#include "calibrate/cpu/layer.h"
#include "models/network/network.h"

namespace plumbline {

/// What each kind sees of its layer.
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

/// The names of a layer's tensors. Kernels find tensors by their places in the lists of the layer:
/// each kind gives its places the names, and the layer is held to them.
struct CpuLayerNames {
  std::vector<std::string_view> parameters;
  std::vector<std::string_view> kept{};
  std::vector<std::string_view> left{};
};

void check_names(const NetworkLayer& layer, const CpuLayerNames& names);

/// The element of a list, or nothing where it is not there.
template <class Pointer>
Pointer at_or_null(const std::vector<Pointer>& list, std::size_t i, bool there) {
  return there ? list[i] : nullptr;
}

// cpu_simple_layers.cpp
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<Linear>& made);
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<Relu>& made);
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<Gelu>& made);
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<LayerNorm>& made);
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<Lstm>& made);

// cpu_transformer_layers.cpp
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<AttentionBlock>& made);
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<MlpBlock>& made);
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<Embedding>& made);
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<Head>& made);

// cpu_picture_layers.cpp
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<Conv2d>& made);
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<MaxPool>& made);
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<BatchNorm>& made);
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<Flatten>& made);
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<ResidualBlock>& made);

}  // namespace plumbline
