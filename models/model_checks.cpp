// Cycles told with their layers.
// SPDX-License-Identifier: MIT
#include "models/model_checks.h"

#include <fmt/format.h>

namespace plumbline {

void refuse_cycle(const LayerGraph& graph, const std::function<Mark(const LayerEdge&)>& mark_of,
                  Diagnostics& problems) {
  const std::vector<LayerId> cycle = graph.find_cycle();
  if (cycle.empty()) return;
  constexpr std::size_t most = 8;
  std::string path;
  for (std::size_t i = 0; i < cycle.size() && i < most; ++i) {
    path += clipped(graph.layer(cycle[i]).name) + " -> ";
  }
  if (cycle.size() > most) path += fmt::format("({} more) -> ", cycle.size() - most);
  path += clipped(graph.layer(cycle.front()).name);
  problems.push_back(input_error(mark_of({cycle.back(), cycle.front()}),
                                 fmt::format("the layers form a cycle: {}", path),
                                 "a layer may only consume what earlier layers make"));
}

}  // namespace plumbline
