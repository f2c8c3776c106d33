// Layer kinds, of models by their config.json and of networks.
//
// SPDX-License-Identifier: MIT
#include "models/profile/layer_units.h"

#include <string_view>

namespace plumbline {
namespace {

bool is_attention(std::string_view kind) {
  return kind == "attention" || kind == "attention_block";
}

bool follows_attention(std::string_view kind) {
  return kind == "mlp" || kind == "mlp_block" || kind == "moe";
}

UnitKind unit_kind(std::string_view kind) {
  if (kind == "embedding") return UnitKind::embedding;
  if (kind == "block" || kind == "moe_block") return UnitKind::block;
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
