// The native profile format, version 1, as text.
//
// SPDX-License-Identifier: MIT
#include "models/profile/profile_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>
#include <string_view>

#include "base/bug.h"
#include "base/exact_quantity.h"
#include "base/section_reader.h"
#include "base/yaml_text.h"
#include "models/profile/model_checks.h"
#include "models/profile/ops_writer.h"

namespace plumbline {
namespace {

std::string checked_scalar(std::string_view text) {
  PLUMBLINE_CHECK(text.size() <= kLongestText, text.size());
  return yaml_scalar(text);
}

class ProfileWriter {
 public:
  ProfileWriter(const Model& model, const ProfileComments& comments)
      : model_(model), comments_(comments), ops_(model) {}

  std::string write() && {
    write_comments(comments_.head, "");
    text_ += "version: 1\nkind: profile\n";
    if (!model_.name.empty()) text_ += fmt::format("model: {}\n", checked_scalar(model_.name));
    if (model_.profile.dtype)
      text_ += fmt::format("dtype: {}\n", plumbline::name_of(*model_.profile.dtype));
    write_group();
    write_texts("provenance", model_.profile.provenance);
    write_measurements();
    write_edges();
    text_ += ops_.text();
    write_blocks();
    write_overheads();
    write_links();
    write_factors("slowdown", model_.profile.slowdown);
    write_factors("in_flight", model_.profile.in_flight);
    write_texts("algorithms", model_.profile.algorithms);
    return std::move(text_);
  }

 private:
  void write_comments(const std::vector<std::string>& lines, std::string_view indent) {
    for (const std::string& line : lines) text_ += fmt::format("{}# {}\n", indent, line);
  }

  void write_texts(std::string_view section, const std::map<std::string, std::string>& texts) {
    if (texts.empty()) return;
    text_ += fmt::format("{}:\n", section);
    for (const auto& [key, value] : texts)
      text_ += fmt::format("{}{}\n", yaml_block_key(key), clipped_scalar(value));
  }

  static std::string time_text(const MeasuredTime& time) {
    if (!time.median && !time.q1 && !time.q3 && !time.samples) return exact_text(time.mean);
    std::string text = "{mean: " + exact_text(time.mean);
    if (time.median) text += ", median: " + exact_text(*time.median);
    if (time.q1) text += ", q1: " + exact_text(*time.q1);
    if (time.q3) text += ", q3: " + exact_text(*time.q3);
    if (time.samples) {
      PLUMBLINE_CHECK(*time.samples >= 1 && *time.samples <= kLargestQuantity, *time.samples);
      text += fmt::format(", samples: {}", *time.samples);
    }
    return text + "}";
  }

  static bool is_bare(const MeasuredTime& time, Duration mean) {
    return time.mean == mean && !time.median && !time.q1 && !time.q3 && !time.samples;
  }

  /// Adds the work of the three passes: a map if they differ, else one quantity for each pass.
  template <class T>
  static void add_passes(FlowMap& map, std::string_view key, T forward, T input, T weight) {
    if (forward == T{} && input == T{} && weight == T{} && key != "flops") return;
    if (forward == input && input == weight) return map.add(key, exact_text(forward));
    FlowMap passes;
    if (forward != T{}) passes.add("forward", exact_text(forward));
    if (input != T{}) passes.add("backward_input", exact_text(input));
    if (weight != T{}) passes.add("backward_weight", exact_text(weight));
    map.add(key, std::move(passes).pieces());
  }

  static void add_work(FlowMap& map, const LayerWork& work) {
    const PassWork& f = work.forward;
    const PassWork& i = work.backward_input;
    const PassWork& w = work.backward_weight;
    add_passes(map, "flops", f.flops, i.flops, w.flops);
    add_passes(map, "fp8_flops", f.fp8_flops, i.fp8_flops, w.fp8_flops);
    add_passes(map, "memory_traffic", f.memory_traffic, i.memory_traffic, w.memory_traffic);
    add_passes(map, "link_traffic", f.link_traffic, i.link_traffic, w.link_traffic);
    add_passes(map, "network_traffic", f.network_traffic, i.network_traffic, w.network_traffic);
  }

  static void add_times(FlowMap& map, const LayerCosts& costs) {
    map.add("forward", time_text(costs.forward));
    if (!costs.split ||
        !is_bare(costs.backward, costs.split->input.mean + costs.split->weight.mean))
      map.add("backward", time_text(costs.backward));
    if (costs.split) {
      map.add("backward_input", time_text(costs.split->input));
      map.add("backward_weight", time_text(costs.split->weight));
    }
  }

  static Pieces selective_pieces(const Selective& selective) {
    FlowMap map;
    map.add("activation", exact_text(selective.activation));
    if (!selective.work) {
      map.add("forward", time_text(selective.forward));
    } else {
      const PassWork& work = *selective.work;
      if (work.flops != Flops{} || work.memory_traffic == Bytes{})
        map.add("flops", exact_text(work.flops));
      if (work.fp8_flops != Flops{}) map.add("fp8_flops", exact_text(work.fp8_flops));
      if (work.memory_traffic != Bytes{})
        map.add("memory_traffic", exact_text(work.memory_traffic));
    }
    return std::move(map).pieces();
  }

  Pieces layer_pieces(const Layer& layer, const LayerCosts& costs) const {
    FlowMap map;
    map.add("name", checked_scalar(layer.name));
    if (!layer.kind.empty()) map.add("kind", checked_scalar(layer.kind));
    PLUMBLINE_CHECK(costs.timed || costs.work, "a layer has neither times nor work", layer.name);
    if (costs.timed) add_times(map, costs);
    if (costs.work) add_work(map, *costs.work);
    if (costs.ops) map.add("ops", yaml_scalar(ops_.name_of(*costs.ops)));
    if (!is_bare(costs.update, Duration::zero()) || (costs.update_given && !costs.timed))
      map.add("update", time_text(costs.update));
    if (costs.output != Bytes{}) map.add("output", exact_text(costs.output));
    if (costs.activation != Bytes{}) map.add("activation", exact_text(costs.activation));
    if (costs.selective) map.add("selective", selective_pieces(*costs.selective));
    if (layer.parameters != Bytes{}) map.add("parameters", exact_text(layer.parameters));
    if (layer.replicated != Bytes{}) map.add("replicated", exact_text(layer.replicated));
    if (!layer.tied_to.empty()) {
      FlowMap tied;
      tied.add("to", checked_scalar(layer.tied_to));
      tied.add("parameters", exact_text(layer.tied));
      map.add("tied", std::move(tied).pieces());
    }
    return std::move(map).pieces();
  }

  void write_layers(const Measurement& measurement, std::string_view lead) {
    const std::vector<Layer>& layers = model_.graph.layers();
    PLUMBLINE_CHECK(measurement.layers.size() == layers.size(), measurement.layers.size(),
                    layers.size());
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if (const auto found = comments_.above_layer.find(layers[i].name);
          found != comments_.above_layer.end())
        write_comments(found->second, lead.substr(0, lead.find('-')));
      add_lines(text_, lead, layer_pieces(layers[i], measurement.layers[i]));
    }
  }

  void write_measurements() {
    const std::vector<Layer>& layers = model_.graph.layers();
    PLUMBLINE_CHECK(!layers.empty() && layers.size() <= static_cast<std::size_t>(kMaxLayers) &&
                        !model_.profile.measurements.empty(),
                    layers.size(), model_.profile.measurements.size());
    std::set<std::string_view> names;
    for (const Layer& layer : layers)
      PLUMBLINE_CHECK(names.insert(layer.name).second, "a second layer is named", layer.name);

    if (model_.profile.measurements.size() == 1) {
      const Measurement& only = model_.profile.measurements.front();
      if (only.batch) text_ += fmt::format("batch: {}\n", *only.batch);
      text_ += "layers:\n";
      write_layers(only, "  - ");
      return;
    }
    text_ += "measurements:\n";
    std::int64_t last = 0;
    for (const Measurement& measurement : model_.profile.measurements) {
      PLUMBLINE_CHECK(measurement.batch && *measurement.batch > last, measurement.batch.value_or(0),
                      last);
      last = *measurement.batch;
      text_ += fmt::format("  - batch: {}\n    layers:\n", last);
      write_layers(measurement, "      - ");
    }
  }

  bool is_chain() const {
    const std::vector<LayerEdge>& edges = model_.graph.edges();
    if (edges.size() + 1 != model_.graph.size()) return false;
    for (std::uint32_t i = 0; i < edges.size(); ++i) {
      if (edges[i] != LayerEdge{{i}, {i + 1}}) return false;
    }
    return true;
  }

  std::string name_of(LayerId id) const {
    PLUMBLINE_CHECK(id.value < model_.graph.size(), id.value, model_.graph.size());
    return yaml_scalar(model_.graph.layer(id).name);
  }

  void write_edges() {
    if (is_chain()) return;
    Pieces pairs;
    pairs.reserve(model_.graph.edges().size());
    for (const LayerEdge& edge : model_.graph.edges())
      pairs.push_back(fmt::format("[{}, {}]", name_of(edge.from), name_of(edge.to)));
    add_lines(text_, "edges: ", flow_list(std::move(pairs)));
  }

  void write_blocks() {
    if (model_.profile.blocks.empty()) return;
    text_ += "blocks:\n";
    for (const Block& block : model_.profile.blocks) {
      Pieces names;
      names.reserve(block.layers.size());
      for (const LayerId id : block.layers) names.push_back(name_of(id));
      FlowMap map;
      map.add("layers", flow_list(std::move(names)));
      map.add("forward", exact_text(block.forward));
      map.add("backward", exact_text(block.backward));
      add_lines(text_, "  - ", std::move(map).pieces());
    }
  }

  void write_group() {
    const DeviceGroup& group = model_.profile.group;
    if (!group.given) return;
    FlowMap map;
    map.add("devices", std::to_string(group.devices));
    if (group.tensor_parallel > 1)
      map.add("tensor_parallel", std::to_string(group.tensor_parallel));
    if (group.devices_per_server)
      map.add("devices_per_server", std::to_string(*group.devices_per_server));
    if (group.forward) map.add("forward_flops", exact_text(*group.forward));
    add_lines(text_, "group: ", std::move(map).pieces());
  }

  void write_overheads() {
    if (!model_.profile.overheads) return;
    const Overheads& overheads = *model_.profile.overheads;
    FlowMap map;
    map.add("per_op", exact_text(overheads.per_op));
    map.add("hand_over", exact_text(overheads.hand_over));
    map.add("per_iteration", exact_text(overheads.per_iteration));
    if (overheads.add_up) map.add("add_up", exact_text(*overheads.add_up));
    if (overheads.stash) map.add("stash", exact_text(*overheads.stash));
    add_lines(text_, "overheads: ", std::move(map).pieces());
  }

  static Pieces table_text(const TransferTable& table) {
    Pieces rows;
    rows.reserve(table.size());
    for (const auto& [size, time] : table)
      rows.push_back(fmt::format("[{}, {}]", exact_text(size), exact_text(time)));
    return flow_list(std::move(rows));
  }

  void write_links() {
    if (model_.profile.links.empty()) return;
    text_ += "links:\n";
    for (const MeasuredLink& link : model_.profile.links) {
      FlowMap map;
      if (!link.kind.empty()) map.add("kind", checked_scalar(link.kind));
      map.add("latency", exact_text(link.latency));
      if (link.bandwidth) map.add("bandwidth", exact_text(*link.bandwidth));
      if (!link.table.empty()) map.add("table", table_text(link.table));
      if (!link.busy.empty()) {
        std::vector<Pieces> all;
        for (const BusyTransfers& busy : link.busy) {
          FlowMap one;
          one.add("workers", std::to_string(busy.workers));
          one.add("table", table_text(busy.table));
          all.push_back(std::move(one).pieces());
        }
        map.add("busy", flow_list_of(std::move(all)));
      }
      add_lines(text_, "  - ", std::move(map).pieces());
    }
  }

  /// Writes lists of factors by kind of layer.
  void write_factors(std::string_view key, const KindFactors& all) {
    if (all.empty()) return;
    text_ += fmt::format("{}:\n", key);
    for (const auto& [kind, factors] : all) {
      PLUMBLINE_CHECK(!factors.empty(), kind);
      Pieces items;
      items.reserve(factors.size());
      for (const double factor : factors) {
        PLUMBLINE_CHECK(factor >= 0 && factor <= 1000, factor);
        items.push_back(
            fmt::format("{}", std::abs(factor)));  // the fewest digits that a reader needs
      }
      add_lines(text_, yaml_block_key(kind), flow_list(std::move(items)));
    }
  }

  const Model& model_;
  const ProfileComments& comments_;
  const OpTexts ops_;
  std::string text_;
};

}  // namespace

std::string profile_yaml(const Model& model, const ProfileComments& comments) {
  return ProfileWriter(model, comments).write();
}

}  // namespace plumbline
