// Cycles told with their layers, and texts that cannot be written.
//
// SPDX-License-Identifier: MIT
#include "models/profile/model_checks.h"

#include <fmt/format.h>

#include <string_view>

#include "base/section_reader.h"

namespace plumbline {

void report_cycle(const LayerGraph& graph, const std::function<Mark(const LayerEdge&)>& mark_of,
                  Diagnostics& problems) {
  const std::vector<LayerId> cycle = graph.find_cycle();
  if (cycle.empty()) return;
  constexpr std::size_t max = 8;
  std::string path;
  for (std::size_t i = 0; i < cycle.size() && i < max; ++i) {
    path += clipped(graph.layer(cycle[i]).name) + " -> ";
  }
  if (cycle.size() > max) path += fmt::format("({} more) -> ", cycle.size() - max);
  path += clipped(graph.layer(cycle.front()).name);
  problems.push_back(input_error(mark_of({cycle.back(), cycle.front()}),
                                 fmt::format("the layers form a cycle: {}", path),
                                 "a layer may only consume what earlier layers make"));
}

namespace {

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

void report_unwritable(std::string_view what, std::string_view text, const Mark& mark,
                       Diagnostics& problems) {
  if (text.size() <= kLongestText && is_utf8(text)) return;
  problems.push_back(input_error(
      mark,
      fmt::format("{} '{}' {}", what, clipped(text),
                  text.size() > kLongestText ? "is longer than 10,000 bytes" : "is no UTF-8")));
}

}  // namespace

void report_unwritable(const Model& model, const Mark& mark, Diagnostics& problems) {
  report_unwritable("the model's name", model.name, mark, problems);
  for (const Layer& layer : model.graph.layers()) {
    report_unwritable("the layer's name", layer.name, mark, problems);
    report_unwritable("the layer's kind", layer.kind, mark, problems);
  }
}

}  // namespace plumbline
