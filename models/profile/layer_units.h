// The layers of a transformer in its users' units: embedding, blocks, head.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "models/profile/layer_graph.h"

namespace plumbline {

/// The kind of a run of layers, by the kinds of its layers.
enum class UnitKind : std::uint8_t {
  embedding,
  block,       ///< One layer, or an attention and the MLP or experts behind it.
  prediction,  ///< A module that predicts a further token.
  head,
  other,
};

/// Consecutive layers that are one thing for users who cut a model.
struct LayerUnit {
  UnitKind kind = UnitKind::other;
  std::uint32_t layers = 1;
};

/// The units of `order`, which is a topological order of the graph. An attention layer without an
/// MLP or experts behind it is `other`, and so is every layer of an unknown kind.
std::vector<LayerUnit> layer_units(const LayerGraph& graph, const std::vector<LayerId>& order);

}  // namespace plumbline
