// One function for each source of layers.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/model_section.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/section_reader.h"
#include "models/import/pipedream_graph.h"
#include "models/network/network_reader.h"
#include "models/profile/layers_reader.h"
#include "models/profile/model_checks.h"
#include "models/profile/profile_reader.h"

namespace plumbline {
namespace {

class ModelSectionReader {
 public:
  ModelSectionReader(SectionReader& section, Diagnostics& problems)
      : section_(section), problems_(problems) {}

  ModelSection read() {
    const std::vector<std::string> sources = {"profile",   "uniform",     "layers",
                                              "pipedream", "huggingface", "network"};
    std::vector<std::string> given;
    for (const std::string& source : sources) {
      if (section_.has(source)) given.push_back(source);
    }
    read_.batch = section_.count("batch");
    report_sharing_alone();
    const bool measured_network = given == std::vector<std::string>{"profile", "network"};
    if (given.size() != 1 && !measured_network) {
      section_.child("edges");
      section_.error(
          given.empty() ? section_.mark() : section_.mark_of(given[1]),
          given.empty() ? "model names no source of layers"
                        : fmt::format("model has both {} and {}", given[0], given[1]),
          fmt::format("give exactly one of {}{}", fmt::join(sources, ", "),
                      given.size() > 1 ? "; only a network has its profile beside it" : ""));
    } else if (measured_network) {
      read_measured_network();
    } else if (given.front() == "network") {
      read_network_alone();
    } else if (given.front() == "profile") {
      load("profile", read_profile);
    } else if (given.front() == "pipedream") {
      load("pipedream", read_pipedream_graph);
    } else if (given.front() == "huggingface") {
      read_config();
    } else if (given.front() == "uniform") {
      read_uniform();
    } else {
      read_written_out();
    }
    for (const std::string& source : sources) section_.child(source);
    for (const std::string_view key : transformer_keys()) section_.child(key);
    section_.finish();
    return std::move(read_);
  }

 private:
  void load(std::string_view key, Result<Model> (*read_model_file)(const std::string&)) {
    const auto path = section_.file(key);
    if (!path) return;
    auto model = read_model_file(path->value);
    if (!model) return section_.add_file_problems(key, path->mark, model.problems());
    read_.model = SharedValue<Model>(*std::move(model));
  }

  void read_config() {
    if (read_.batch) {
      section_.error(read_.batch->mark, "model.batch stands beside model.huggingface",
                     "the layers are derived for training.micro_batch_size, whatever it is");
    }
    read_.transformer = read_transformer(section_);
  }

  /// Reports keys of model sharing without `huggingface`: the costs of other models fix the
  /// sharing.
  void report_sharing_alone() {
    if (section_.has("huggingface")) return;
    for (const std::string_view key : transformer_keys()) {
      if (!section_.has(key)) continue;
      section_.error(section_.mark_of(key),
                     fmt::format("model.{} stands without model.huggingface", key),
                     "the costs of other models are those of one device already: plumbline import "
                     "huggingface shares layers before they are written");
    }
  }

  std::optional<Marked<std::string>> load_network() {
    auto path = section_.file("network");
    if (!path) return std::nullopt;
    auto network = read_network(path->value);
    if (!network) {
      section_.add_file_problems("network", path->mark, network.problems());
      return std::nullopt;
    }
    read_.network = std::make_shared<const Network>(*std::move(network));
    return path;
  }

  void read_network_alone() {
    const auto path = load_network();
    if (!path) return;
    section_.error(path->mark, "model.network says what is executed, but not how long it takes",
                   "name a profile of it beside it, model.profile; `plumbline calibrate NETWORK "
                   "--backend cpu --devices N -o PROFILE` measures one");
  }

  void read_measured_network() {
    const std::size_t problems_before = problems_.size();
    load("profile", read_profile);
    const auto path = load_network();
    if (path && problems_.size() == problems_before) report_other_layers();
  }

  /// Errors: a profile that is not one of this network.
  void report_other_layers() {
    const Network& network = *read_.network;
    const LayerGraph& graph = read_.model->graph;
    const auto refuse = [&](std::string what) {
      section_.error(section_.mark_of("profile"),
                     fmt::format("the profile is not one of the network '{}': {}",
                                 clipped(network.name), what),
                     "measure this network, or name the one that was measured");
    };
    if (graph.size() != network.layers.size())
      return refuse(
          fmt::format("it has {} layers, and the network {}", graph.size(), network.layers.size()));
    for (std::uint32_t i = 0; i < graph.size(); ++i) {
      const Layer& measured = graph.layer({i});
      const NetworkLayer& layer = network.layers[i];
      if (measured.name != layer.name)
        return refuse(fmt::format("its layer {} is '{}', and the network's '{}'", i,
                                  clipped(measured.name), clipped(layer.name)));
      const Bytes parameters = parameter_bytes(network, layer);
      if (measured.parameters != parameters)
        return refuse(fmt::format("its layer '{}' has {} B of parameters, and the network's {} B",
                                  clipped(layer.name), measured.parameters.count,
                                  parameters.count));
    }
    if (graph.edges() != LayerGraph::chain(graph.layers()).edges())
      refuse("its layers are no chain");
  }

  /// Reads the number format and the group of the profile.
  void read_numbers_and_group() {
    read_.model.edit().profile.dtype = read_dtype(section_);
    read_.model.edit().profile.group = read_group(section_, problems_);
  }

  NamedOps read_ops() { return {section_, read_.model->profile.dtype, problems_}; }

  void read_uniform() {
    auto uniform = section_.section("uniform");
    uniform->require("layers");
    const auto layers = uniform->count("layers");
    Layer layer;
    read_numbers_and_group();
    NamedOps ops = read_ops();
    const LayerCosts costs = read_layer_costs(*uniform, layer, ops, problems_);
    uniform->finish();
    if (problems_.empty()) ops.report_unused();
    if (!layers) return;
    std::vector<Layer> chain;
    chain.reserve(static_cast<std::size_t>(layers->value));
    for (std::int64_t i = 0; i < layers->value; ++i) {
      chain.push_back(layer);
      chain.back().name = fmt::format("layer_{}", i);
    }
    read_.model.edit().graph = LayerGraph::chain(std::move(chain));
    read_.model.edit().profile.measurements = {
        {std::nullopt, std::vector<LayerCosts>(static_cast<std::size_t>(layers->value), costs)}};
  }

  void read_written_out() {
    read_numbers_and_group();
    NamedOps ops = read_ops();
    auto list = read_layers(section_, "layers", ops, problems_);
    if (!list) {
      section_.child("edges");
      return;
    }
    if (problems_.empty()) ops.report_unused();
    auto graph = read_edges(section_, "edges", std::move(list->layers), problems_);
    if (!graph) return;
    read_.model.edit().graph = *std::move(graph);
    read_.model.edit().profile.measurements = {{std::nullopt, std::move(list->costs)}};
  }

  SectionReader& section_;
  Diagnostics& problems_;
  ModelSection read_;
};

}  // namespace

ModelSection read_model_section(SectionReader& section, Diagnostics& problems) {
  return ModelSectionReader(section, problems).read();
}

}  // namespace plumbline
