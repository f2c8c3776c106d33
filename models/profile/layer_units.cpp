// Layer kinds, of models by their config.json and of networks.
//
// SPDX-License-Identifier: MIT
#include "models/profile/layer_units.h"

#include <string_view>

namespace plumbline {
namespace {

/// Of a network; of a config.json, where names of blocks that differ have something in front:
/// "sliding_attention".
bool is_attention(std::string_view kind) {
  return kind.ends_with("attention") || kind == "attention_block";
}

bool follows_attention(std::string_view kind) {
  return kind == "mlp_block" || kind.ends_with("mlp") || kind.ends_with("moe");
}

/// "block", "moe_block", "sliding_block": a network's halves of blocks are none.
bool is_block(std::string_view kind) {
  return kind == "block" || (kind.ends_with("_block") && kind != "attention_block" &&
                             kind != "mlp_block" && kind != "residual_block");
}

UnitKind unit_kind(std::string_view kind) {
  if (kind == "embedding") return UnitKind::embedding;
  if (is_block(kind)) return UnitKind::block;
  if (kind == "mtp") return UnitKind::prediction;
  if (kind == "head") return UnitKind::head;
  return UnitKind::other;
}

}  // namespace

std::vector<LayerUnit> layer_units(const LayerGraph& graph, const std::vector<LayerId>& order) {
  std::vector<LayerUnit> units;
  units.reserve(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::string& kind = graph.layer(order[i]).kind;
    const bool is_pair = is_attention(kind) && i + 1 < order.size() &&
                         follows_attention(graph.layer(order[i + 1]).kind);
    if (is_pair) {
      units.push_back({UnitKind::block, 2});
      ++i;
    } else {
      units.push_back({unit_kind(kind), 1});
    }
  }
  return units;
}

}  // namespace plumbline
