// Layers with their costs, and the edges between them, key by key.
//
// SPDX-License-Identifier: MIT
#include "models/profile/layers_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/profile/layer_format.h"
#include "models/profile/layer_work_reader.h"
#include "models/profile/model_checks.h"

namespace plumbline {
namespace {

/// Reads a time: a bare quantity, or a map of statistics.
std::optional<MeasuredTime> read_time(SectionReader& section, std::string_view key,
                                      Diagnostics& problems) {
  const YamlNode* node = section.child(key);
  if (!node) return std::nullopt;
  MeasuredTime time;
  if (node->kind != YamlNode::Kind::map) {
    const auto mean = read_duration(*node, section.path_of(key), problems);
    if (!mean) return std::nullopt;
    time.mean = *mean;
    return time;
  }
  SectionReader statistics(*node, section.path_of(key), statistics_format(), problems);
  statistics.require("mean");
  const auto mean = statistics.duration("mean");
  const auto value = [](const std::optional<Marked<Duration>>& read) {
    return read ? std::optional(read->value) : std::nullopt;
  };
  time.median = value(statistics.duration("median"));
  time.q1 = value(statistics.duration("q1"));
  time.q3 = value(statistics.duration("q3"));
  if (const auto samples = statistics.count("samples")) time.samples = samples->value;
  statistics.finish();
  if (!mean) return std::nullopt;
  time.mean = mean->value;
  return time;
}

/// Reads `selective` of a layer whose other costs have been read.
std::optional<Selective> read_selective(SectionReader& layer, const LayerCosts& costs,
                                        Diagnostics& problems) {
  auto section = layer.section("selective");
  if (!section) return std::nullopt;
  section->require("activation");
  Selective selective;
  if (auto bytes = section->bytes("activation")) {
    selective.activation = bytes->value;
    if (selective.activation > costs.activation) {
      section->error(bytes->mark,
                     fmt::format("{} is {} B, more than the {} B of the layer's activation",
                                 section->path_of("activation"), selective.activation.count,
                                 costs.activation.count),
                     "of the activation, what is recomputed");
    }
  }
  const bool has_work = section->has("flops") || section->has("memory_traffic");
  if (costs.timed) {
    section->require("forward", "the time to recompute it, as the layer gives times");
  } else if (!has_work) {
    section->require("forward",
                     "or give flops or memory_traffic, for cluster.device to estimate it");
  }
  if (auto time = read_time(*section, "forward", problems)) selective.forward = *time;
  PassWork work;
  if (const YamlNode* node = section->child("flops"))
    work.flops = read_flops(*node, section->path_of("flops"), problems).value_or(Flops{});
  if (const YamlNode* node = section->child("fp8_flops")) {
    work.fp8_flops = read_flops(*node, section->path_of("fp8_flops"), problems).value_or(Flops{});
    if (work.fp8_flops.count > work.flops.count) report_fp8_flops(*section);
  }
  if (auto bytes = section->bytes("memory_traffic")) work.memory_traffic = bytes->value;
  if (has_work && !section->has("forward")) selective.work = work;
  section->finish();
  return selective;
}

}  // namespace

LayerIds layer_ids(const std::vector<Layer>& layers) {
  LayerIds ids;
  for (std::uint32_t i = 0; i < layers.size(); ++i) ids.emplace(layers[i].name, LayerId{i});
  return ids;
}

std::vector<std::string> layer_names(const std::vector<Layer>& layers) {
  std::vector<std::string> names;
  names.reserve(layers.size());
  for (const Layer& layer : layers) names.push_back(layer.name);
  return names;
}

LayerCosts read_layer_costs(SectionReader& section, Layer& layer, NamedOps& ops,
                            Diagnostics& problems) {
  LayerCosts costs;
  if (auto kind = section.text("kind")) layer.kind = kind->value;
  const std::size_t problems_before = problems.size();
  costs.work = read_layer_work(section, problems);
  ops.give_ops(section, costs, problems.size() == problems_before);
  const std::vector<std::string_view> times = {"forward", "backward", "backward_input",
                                               "backward_weight"};
  costs.timed = !(section.has("flops") || section.has("memory_traffic")) ||
                std::any_of(times.begin(), times.end(),
                            [&](std::string_view key) { return section.has(key); });
  if (costs.timed) section.require("forward", "or give flops, for cluster.device to estimate it");
  if (auto time = read_time(section, "forward", problems)) costs.forward = *time;
  const auto full = read_time(section, "backward", problems);
  const auto input = read_time(section, "backward_input", problems);
  const auto weight = read_time(section, "backward_weight", problems);
  if (section.has("backward_input") != section.has("backward_weight")) {
    section.require(section.has("backward_input") ? "backward_weight" : "backward_input",
                    "a split backward needs both of its parts");
  } else if (costs.timed && !section.has("backward_input")) {
    section.require("backward", "or give backward_input and backward_weight");
  }
  if (input && weight) {
    costs.split = {*input, *weight};
    costs.backward.mean = input->mean + weight->mean;
  }
  if (full) costs.backward = *full;
  if (auto time = read_time(section, "update", problems)) costs.update = *time;
  costs.update_given = section.has("update");
  if (auto bytes = section.bytes("output")) costs.output = bytes->value;
  if (auto bytes = section.bytes("activation")) costs.activation = bytes->value;
  costs.selective = read_selective(section, costs, problems);
  if (auto bytes = section.bytes("parameters")) layer.parameters = bytes->value;
  if (auto bytes = section.bytes("replicated")) {
    layer.replicated = bytes->value;
    if (layer.replicated > layer.parameters) {
      section.error(bytes->mark,
                    fmt::format("{} is {} B, more than the {} B of its parameters",
                                section.path_of("replicated"), layer.replicated.count,
                                layer.parameters.count),
                    "of the parameters, those that each device of the group holds");
    }
  }
  return costs;
}

namespace {

/// Reads whose table a layer uses. Requires: its parameters have been read.
void read_tied(SectionReader& section, Layer& layer) {
  auto tied = section.section("tied");
  if (!tied) return;
  tied->require("to", "the name of the layer whose table it is");
  tied->require("parameters", "the size of the table");
  if (const auto to = tied->text("to")) layer.tied_to = to->value;
  if (const auto bytes = tied->bytes("parameters")) {
    layer.tied = bytes->value;
    if (layer.tied > layer.parameters) {
      tied->error(
          bytes->mark,
          fmt::format("{} is {} B, more than the {} B of the layer's parameters",
                      tied->path_of("parameters"), layer.tied.count, layer.parameters.count),
          "of the parameters, those that are the other layer's table");
    }
  }
  tied->finish();
}

/// Errors: a table of a layer that is not there, that is the layer itself, or that is tied itself
/// or is smaller.
void check_tied(const std::vector<Layer>& layers, const std::vector<Mark>& marks,
                SectionReader& section) {
  const LayerIds ids = layer_ids(layers);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Layer& layer = layers[i];
    if (layer.tied_to.empty()) continue;
    const auto found = ids.find(layer.tied_to);
    const Layer* const owner = found == ids.end() ? nullptr : &layers[found->second.value];
    const auto wrong = [&](const std::string& why) {
      section.error(marks[i], fmt::format("layer '{}' is tied to '{}', {}", clipped(layer.name),
                                          clipped(layer.tied_to), why));
    };
    if (!owner) {
      wrong("which is no layer");
    } else if (owner == &layer) {
      wrong("which is the layer itself");
    } else if (!owner->tied_to.empty()) {
      wrong(fmt::format("which is tied to '{}' itself", clipped(owner->tied_to)));
    } else if (owner->parameters < layer.tied) {
      wrong(fmt::format("whose {} B of parameters are less than a table of {} B",
                        owner->parameters.count, layer.tied.count));
    }
  }
}

}  // namespace

std::optional<LayerList> read_layers(SectionReader& section, std::string_view key, NamedOps& ops,
                                     Diagnostics& problems) {
  const std::size_t problems_before = problems.size();
  const std::vector<YamlNode>* nodes = section.list(key);
  if (!nodes) return std::nullopt;
  if (nodes->empty() || nodes->size() > static_cast<std::size_t>(kMaxLayers)) {
    section.error(section.mark_of(key),
                  fmt::format("{} holds {} layers, which is not between 1 and {}",
                              section.path_of(key), nodes->size(), kMaxLayers));
    return std::nullopt;
  }
  LayerList list;
  std::map<std::string, int> lines;
  std::vector<Mark> marks;
  for (std::size_t i = 0; i < nodes->size(); ++i) {
    const YamlNode& node = (*nodes)[i];
    SectionReader layer(node, fmt::format("{}[{}]", section.path_of(key), i), layer_format(),
                        problems);
    layer.require("name");
    Layer& named = list.layers.emplace_back();
    if (auto name = layer.text("name")) named.name = name->value;
    list.costs.push_back(read_layer_costs(layer, named, ops, problems));
    read_tied(layer, named);
    marks.push_back(layer.mark_of("tied"));
    layer.finish();
    const std::string& name = list.layers.back().name;
    const auto [first, is_new] = lines.emplace(name, layer.mark_of("name").line);
    if (!is_new && !name.empty()) {
      section.error(layer.mark_of("name"),
                    fmt::format("a second layer is named '{}'", clipped(name)),
                    fmt::format("the first is on line {}", first->second));
    }
  }
  if (problems.size() == problems_before) check_tied(list.layers, marks, section);
  if (problems.size() != problems_before) return std::nullopt;
  return list;
}

std::optional<LayerGraph> read_edges(SectionReader& section, std::string_view key,
                                     std::vector<Layer> layers, Diagnostics& problems) {
  if (!section.has(key)) {
    section.child(key);
    return LayerGraph::chain(std::move(layers));
  }
  const std::size_t problems_before = problems.size();
  const std::vector<YamlNode>* nodes = section.list(key);
  if (!nodes || layers.empty()) return std::nullopt;
  const auto ids = layer_ids(layers);
  const std::vector<std::string> names = layer_names(layers);
  LayerGraph graph;
  for (Layer& layer : layers) graph.add_layer(std::move(layer));
  const std::string path = section.path_of(key);
  std::vector<LayerEdge> edges;
  std::map<LayerEdge, Mark> marks;
  for (const YamlNode& node : *nodes) {
    if (node.kind != YamlNode::Kind::sequence || node.items.size() != 2) {
      section.error(node.mark, fmt::format("an element of {} is no pair of layers", path),
                    "such as [first, second]");
      continue;
    }
    std::optional<LayerId> ends[2];
    for (int i = 0; i < 2; ++i) {
      const YamlNode& end = node.items[static_cast<std::size_t>(i)];
      const auto name = read_text(end, path, problems);
      if (!name) continue;
      if (const auto found = ids.find(*name); found != ids.end()) {
        ends[i] = found->second;
      } else {
        section.error(end.mark,
                      fmt::format("{} names '{}', which is no layer", path, clipped(*name)),
                      did_you_mean(*name, names));
      }
    }
    if (!ends[0] || !ends[1]) continue;
    if (*ends[0] == *ends[1]) {
      section.error(node.mark,
                    fmt::format("{} joins '{}' to itself", path, clipped(names[ends[0]->value])));
    } else {
      edges.push_back({*ends[0], *ends[1]});
      marks[{*ends[0], *ends[1]}] = node.mark;
    }
  }
  if (problems.size() != problems_before) return std::nullopt;
  graph.add_edges(edges);
  report_cycle(
      graph, [&](const LayerEdge& edge) { return marks.at(edge); }, problems);
  if (problems.size() != problems_before) return std::nullopt;
  return graph;
}

}  // namespace plumbline
