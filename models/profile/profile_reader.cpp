// The native profile format, version 1.
//
// SPDX-License-Identifier: MIT
#include "models/profile/profile_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "models/profile/layers_reader.h"
#include "models/profile/profile_format.h"

namespace plumbline {
namespace {

/// The layers of every measurement must be those of the first.
void compare_layers(const std::vector<Layer>& first, const std::vector<Layer>& other,
                    const Mark& mark, Diagnostics& problems) {
  const auto fail = [&](std::string message) {
    problems.push_back(input_error(mark, std::move(message),
                                   "every measurement holds the same layers in the same order"));
  };
  if (first.size() != other.size()) {
    return fail(fmt::format("the number of layers is {} here and {} in the first measurement",
                            other.size(), first.size()));
  }
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (first[i].name != other[i].name) {
      return fail(fmt::format("layer {} of this measurement is '{}', in the first one '{}'", i,
                              clipped(other[i].name), clipped(first[i].name)));
    }
    if (first[i].parameters != other[i].parameters) {
      return fail(fmt::format(
          "layer '{}' has {} B of parameters here and {} B in the first measurement",
          clipped(first[i].name), other[i].parameters.count, first[i].parameters.count));
    }
    if (first[i].replicated != other[i].replicated) {
      return fail(fmt::format(
          "layer '{}' has {} B of replicated parameters here and {} B in the first measurement",
          clipped(first[i].name), other[i].replicated.count, first[i].replicated.count));
    }
    if (first[i].tied_to != other[i].tied_to || first[i].tied != other[i].tied) {
      return fail(fmt::format(
          "layer '{}' is tied to '{}' here and to '{}' in the first measurement",
          clipped(first[i].name), clipped(other[i].tied_to), clipped(first[i].tied_to)));
    }
  }
}

class ProfileReader {
 public:
  Result<Model> read(const YamlNode& root) {
    SectionReader file(root, "", profile_format(), problems_);
    file.require("version");
    file.require("kind", "a profile says kind: profile");
    file.count("version");
    if (auto kind = file.text("kind"); kind && kind->value != "profile") {
      file.error(kind->mark,
                 fmt::format("kind is '{}', where a profile is wanted", clipped(kind->value)),
                 "a profile says kind: profile");
    }
    if (auto name = file.text("model")) model_.name = name->value;
    model_.profile.dtype = read_dtype(file);
    model_.profile.group = read_group(file, problems_);
    read_provenance(file);
    NamedOps ops(file, model_.profile.dtype, problems_);
    read_measurements(file, ops);
    if (problems_.empty()) ops.report_unused();
    if (auto graph = read_edges(file, "edges", std::move(layers_), problems_))
      model_.graph = *std::move(graph);
    read_blocks(file);
    if (auto section = file.section("overheads")) {
      model_.profile.overheads = read_overheads(*section);
      section->finish();
    }
    read_links(file);
    read_factors(file, "slowdown", slowdown_format(), model_.profile.slowdown);
    read_factors(file, "in_flight", in_flight_format(), model_.profile.in_flight);
    read_algorithms(file);
    file.finish();
    if (!problems_.empty()) return problems_;
    return std::move(model_);
  }

 private:
  void read_provenance(SectionReader& file) {
    const YamlNode* node = file.child("provenance");
    if (!node || node->kind == YamlNode::Kind::null) return;
    const SectionReader checked(*node, "provenance", provenance_format(), problems_);
    for (const YamlNode::Entry& entry : node->entries) {
      if (entry.value.kind == YamlNode::Kind::null) continue;
      if (auto text = read_text(entry.value, "provenance." + entry.key, problems_)) {
        model_.profile.provenance[entry.key] = *text;
      }
    }
  }

  void add_measurement(SectionReader& section, NamedOps& ops) {
    Measurement measurement;
    if (auto batch = section.count("batch")) measurement.batch = batch->value;
    auto list = read_layers(section, "layers", ops, problems_);
    if (!list) return;
    if (model_.profile.measurements.empty()) {
      layers_ = std::move(list->layers);
    } else {
      compare_layers(layers_, list->layers, section.mark(), problems_);
    }
    measurement.layers = std::move(list->costs);
    compare_selective(measurement.layers, section.mark());
    model_.profile.measurements.push_back(std::move(measurement));
  }

  /// Checks that a layer has `selective` in every measurement or in none.
  void compare_selective(const std::vector<LayerCosts>& layers, const Mark& mark) {
    if (model_.profile.measurements.empty()) return;
    const std::vector<LayerCosts>& first = model_.profile.measurements.front().layers;
    for (std::size_t i = 0; i < std::min(first.size(), layers.size()); ++i) {
      if (first[i].selective.has_value() == layers[i].selective.has_value()) continue;
      problems_.push_back(input_error(
          mark,
          fmt::format("layer '{}' has {} here, and {} in the first measurement",
                      clipped(layers_[i].name), layers[i].selective ? "selective" : "no selective",
                      first[i].selective ? "one" : "none"),
          "every measurement says what is recomputed, or none does"));
    }
  }

  void read_measurements(SectionReader& file, NamedOps& ops) {
    if (!file.has("measurements")) {
      file.require("layers", "or give a list of measurements, each with batch and layers");
      add_measurement(file, ops);
      return;
    }
    const std::vector<YamlNode>* nodes = file.list("measurements");
    if (!nodes) return;
    for (const std::string_view key : {"batch", "layers"}) {
      if (file.has(key))
        file.error(file.mark_of(key), fmt::format("{} stands beside measurements", key),
                   "it belongs into each measurement");
      file.child(key);
    }
    if (nodes->empty()) file.error(file.mark_of("measurements"), "measurements is an empty list");
    for (std::size_t i = 0; i < nodes->size(); ++i) {
      SectionReader section((*nodes)[i], fmt::format("measurements[{}]", i), measurement_format(),
                            problems_);
      section.require("batch");
      section.require("layers");
      add_measurement(section, ops);
      report_repeated_batch(section);
      section.finish();
    }
    auto& held = model_.profile.measurements;
    std::stable_sort(held.begin(), held.end(),
                     [](const Measurement& a, const Measurement& b) { return a.batch < b.batch; });
  }

  void report_repeated_batch(SectionReader& section) {
    if (model_.profile.measurements.empty() || !model_.profile.measurements.back().batch) return;
    const std::int64_t batch = *model_.profile.measurements.back().batch;
    const Mark mark = section.mark_of("batch");
    const auto [first, is_new] = batch_lines_.emplace(batch, mark.line);
    if (is_new || first->second == mark.line) return;
    section.error(mark, fmt::format("the batch of {} is measured a second time", batch),
                  fmt::format("the first is on line {}", first->second));
  }

  void read_blocks(SectionReader& file) {
    if (!file.has("blocks")) {
      file.child("blocks");
      return;
    }
    const std::vector<YamlNode>* nodes = file.list("blocks");
    if (!nodes) return;
    const auto ids = layer_ids(model_.graph.layers());
    for (std::size_t i = 0; i < nodes->size(); ++i) {
      SectionReader section((*nodes)[i], fmt::format("blocks[{}]", i), block_format(), problems_);
      section.require("layers");
      section.require("forward");
      section.require("backward");
      Block block;
      if (const std::vector<YamlNode>* names = section.list("layers")) {
        for (const YamlNode& node : *names) {
          const auto name = read_text(node, section.path_of("layers"), problems_);
          if (!name) continue;
          const auto found = ids.find(*name);
          if (found == ids.end()) {
            if (!ids.empty())
              section.error(node.mark,
                            fmt::format("'{}' is no layer of this profile", clipped(*name)),
                            did_you_mean(*name, layer_names(model_.graph.layers())));
          } else {
            block.layers.push_back(found->second);
          }
        }
      }
      if (auto time = section.duration("forward")) block.forward = time->value;
      if (auto time = section.duration("backward")) block.backward = time->value;
      section.finish();
      model_.profile.blocks.push_back(std::move(block));
    }
  }

  void read_links(SectionReader& file) {
    if (!file.has("links")) {
      file.child("links");
      return;
    }
    const std::vector<YamlNode>* nodes = file.list("links");
    if (!nodes) return;
    for (std::size_t i = 0; i < nodes->size(); ++i) {
      SectionReader section((*nodes)[i], fmt::format("links[{}]", i), measured_link_format(),
                            problems_);
      MeasuredLink link;
      if (auto kind = section.text("kind")) link.kind = kind->value;
      if (auto latency = section.duration("latency")) link.latency = latency->value;
      if (auto rate = section.bandwidth("bandwidth")) link.bandwidth = rate->value;
      read_transfer_times(section, "table", link.table);
      read_busy_transfers(section, link);
      section.finish();
      model_.profile.links.push_back(std::move(link));
    }
  }

  void read_transfer_times(SectionReader& link, std::string_view key, TransferTable& table) {
    if (!link.has(key)) {
      link.child(key);
      return;
    }
    const std::vector<YamlNode>* rows = link.list(key);
    if (!rows) return;
    const std::string path = link.path_of(key);
    for (const YamlNode& row : *rows) {
      if (row.kind != YamlNode::Kind::sequence || row.items.size() != 2) {
        link.error(row.mark, fmt::format("a row of {} is no pair of size and time", path),
                   "such as [1 MiB, 95 us]");
        continue;
      }
      const auto size = read_bytes(row.items[0], path, problems_);
      const auto time = read_duration(row.items[1], path, problems_);
      if (size && time) table.emplace_back(*size, *time);
    }
  }

  void read_busy_transfers(SectionReader& link_section, MeasuredLink& link) {
    if (!link_section.has("busy")) {
      link_section.child("busy");
      return;
    }
    const std::vector<YamlNode>* nodes = link_section.list("busy");
    if (!nodes) return;
    for (std::size_t i = 0; i < nodes->size(); ++i) {
      SectionReader section((*nodes)[i], fmt::format("{}[{}]", link_section.path_of("busy"), i),
                            busy_transfers_format(), problems_);
      section.require("workers");
      section.require("table");
      BusyTransfers busy;
      if (auto workers = section.count("workers"))
        busy.workers = static_cast<std::uint32_t>(workers->value);
      read_transfer_times(section, "table", busy.table);
      section.finish();
      if (!link.busy.empty() && busy.workers <= link.busy.back().workers) {
        section.error(section.mark_of("workers"),
                      fmt::format("{} is not more than before", section.path_of("workers")),
                      "the entries are in the order of their workers");
      }
      const std::vector<YamlNode>* rows = section.has("table") ? section.list("table") : nullptr;
      if (rows != nullptr && rows->empty()) {
        section.error(section.mark_of("table"),
                      fmt::format("{} is empty", section.path_of("table")),
                      "such as [[1 MiB, 95 us]]");
      }
      link.busy.push_back(std::move(busy));
    }
  }

  void read_algorithms(SectionReader& file) {
    const YamlNode* node = file.child("algorithms");
    if (!node) return;
    const SectionReader checked(*node, "algorithms", algorithms_format(), problems_);
    for (const YamlNode::Entry& entry : node->entries) {
      if (auto text = read_text(entry.value, "algorithms." + entry.key, problems_))
        model_.profile.algorithms[entry.key] = *text;
    }
  }

  /// Reads lists of factors by kind of layer.
  void read_factors(SectionReader& file, std::string_view key, const SectionFormat& format,
                    KindFactors& factors) {
    const YamlNode* node = file.child(key);
    if (!node) return;
    SectionReader section(*node, std::string(key), format, problems_);
    for (const YamlNode::Entry& entry : node->entries) {
      const std::string path = section.path_of(entry.key);
      if (entry.value.kind != YamlNode::Kind::sequence) {
        section.error(entry.mark, fmt::format("{} is no list of factors", clipped(path)),
                      "such as [1.0, 1.03, 1.08]");
      }
      for (const YamlNode& factor : entry.value.items) {
        if (auto value = read_real(factor, path, 1000, problems_))
          factors[entry.key].push_back(*value);
      }
    }
  }

  Model model_;
  std::vector<Layer> layers_;
  std::map<std::int64_t, int> batch_lines_;
  Diagnostics problems_;
};

}  // namespace

DeviceGroup read_group(SectionReader& section, Diagnostics& problems) {
  DeviceGroup group;
  auto given = section.section("group");
  if (!given) return group;
  group.given = true;
  if (auto devices = given->count("devices")) group.devices = devices->value;
  if (auto devices = given->count("tensor_parallel")) {
    group.tensor_parallel = devices->value;
    if (group.devices % group.tensor_parallel != 0) {
      given->error(
          devices->mark,
          fmt::format("{} is {}, which does not divide the {} devices of the group",
                      given->path_of("tensor_parallel"), group.tensor_parallel, group.devices),
          "each device of the group divides layers with as many others");
    }
  }
  if (auto devices = given->count("devices_per_server")) {
    group.devices_per_server = devices->value;
    const auto must_fill = [&](std::int64_t members, std::string_view what) {
      const auto [less, more] = std::minmax(devices->value, members);
      if (more % less == 0) return;
      given->error(devices->mark,
                   fmt::format("{} is {}, which the {} of {} does not fill",
                               given->path_of("devices_per_server"), devices->value, what, members),
                   "servers hold several groups, or groups several servers");
    };
    must_fill(group.devices, "group");
    if (group.tensor_parallel < group.devices)
      must_fill(group.tensor_parallel, "tensor-parallel group");
  }
  if (const YamlNode* node = given->child("forward_flops"))
    group.forward = read_flops(*node, given->path_of("forward_flops"), problems);
  given->finish();
  return group;
}

std::optional<NumberFormat> read_dtype(SectionReader& section) {
  const auto name = section.choice("dtype", "number format that is known");
  if (!name) return std::nullopt;
  return number_format(name->value);
}

Overheads read_overheads(SectionReader& section) {
  Overheads overheads;
  if (auto time = section.duration("per_op")) overheads.per_op = time->value;
  if (auto time = section.duration("hand_over")) overheads.hand_over = time->value;
  if (auto time = section.duration("per_iteration")) overheads.per_iteration = time->value;
  if (auto rate = section.bandwidth("add_up")) overheads.add_up = rate->value;
  if (auto rate = section.bandwidth("stash")) overheads.stash = rate->value;
  return overheads;
}

Result<Model> parse_profile(const std::shared_ptr<const Source>& source) {
  auto root = parse_yaml(source);
  if (!root) return root.problems();
  return ProfileReader().read(*root);
}

Result<Model> read_profile(const std::string& path) {
  auto source = read_file(path, kLargestYaml);
  if (!source) return source.problems();
  return parse_profile(*source);
}

}  // namespace plumbline
