// Reads what is not kept, and applies it to the model and its stages.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/recomputation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/bug.h"
#include "base/quantity.h"
#include "base/section_reader.h"
#include "models/profile/offload.h"
#include "sim/scenario/cluster_section.h"
#include "sim/scenario/placement.h"
#include "sim/scenario/scenario.h"
#include "sim/scenario/transformer_section.h"

namespace plumbline {
namespace {

/// Requires: one of kRecomputeNames.
Recompute kind_named(std::string_view word) {
  const auto* const found = std::find(kRecomputeNames.begin(), kRecomputeNames.end(), word);
  return static_cast<Recompute>(found - kRecomputeNames.begin());
}

RecomputedLayers read_layers(SectionReader& schedule, const YamlNode& node) {
  if (node.kind == YamlNode::Kind::sequence) {
    if (node.items.empty()) schedule.error(node.mark, "schedule.recompute_layers is an empty list");
    auto counts = schedule.counts("recompute_layers");
    if (!counts || counts->empty()) return {};
    return *std::move(counts);
  }
  const bool is_number =
      !node.text.empty() && node.text.find_first_not_of("0123456789") == std::string::npos;
  if (is_number) {
    const auto count = schedule.count("recompute_layers");
    return count ? RecomputedLayers(count->value) : RecomputedLayers();
  }
  const auto word = schedule.choice("recompute_layers", "number of layers",
                                    "or a number, or a list with one for each stage");
  if (word && word->value == "fit") return FewestLayers{};
  return {};
}

/// The modules of the list `recompute_modules`; errors leave them out. Absent without the list.
std::optional<RecomputeModules> read_modules(SectionReader& schedule) {
  const std::vector<YamlNode>* const list = schedule.list("recompute_modules");
  if (!list) return std::nullopt;
  RecomputeModules modules;
  if (list->empty())
    schedule.error(schedule.mark_of("recompute_modules"),
                   "schedule.recompute_modules is an empty list", "schedule.recompute: none");
  const std::vector<std::string> names(kRecomputeModules.begin(), kRecomputeModules.end());
  for (const YamlNode& node : *list) {
    const auto found = std::find(names.begin(), names.end(), node.text);
    if (found != names.end()) {
      modules.insert(static_cast<RecomputeModule>(found - names.begin()));
      continue;
    }
    const std::string near = did_you_mean(node.text, names);
    schedule.error(
        node.mark,
        fmt::format("schedule.recompute_modules has '{}', which is no module", clipped(node.text)),
        near.empty() ? fmt::format("one of {}", fmt::join(names, ", ")) : near);
  }
  return modules;
}

}  // namespace

RecomputeChoice read_recomputation(SectionReader& schedule) {
  RecomputeChoice choice;
  if (auto kind = schedule.choice("recompute", "kind of recomputation")) {
    choice.kind = kind_named(kind->value);
    choice.mark = kind->mark;
  }
  if (const YamlNode* const node = schedule.child("recompute_layers")) {
    choice.layers = read_layers(schedule, *node);
    choice.layers_mark = node->mark;
    if (choice.leaves_some() && !by_layer(choice.kind)) {
      schedule.error(
          node->mark,
          "schedule.recompute_layers goes with recompute: layers or selective, by which "
          "each layer recomputes its own activations",
          "schedule.recompute: layers, or no schedule.recompute_layers (set it to nothing: "
          "schedule.recompute_layers=)");
    }
  }
  choice.modules_mark = schedule.mark_of("recompute_modules");
  choice.modules = read_modules(schedule);
  if (const auto early = schedule.boolean("recompute_early")) {
    choice.early = early->value;
    choice.early_mark = early->mark;
  }
  return choice;
}

std::optional<Diagnostic> choose_modules(const RecomputeChoice& choice,
                                         TransformerChoice* transformer,
                                         std::vector<std::string>& notes) {
  if (!choice.modules) return std::nullopt;
  if (!transformer) {
    return input_error(choice.modules_mark,
                       "schedule.recompute_modules stands without model.huggingface",
                       "layers of other models state what they recompute: selective, beside their "
                       "activation");
  }
  if (choice.kind == Recompute::selective) {
    transformer->options.recompute_modules = choice.modules;
  } else {
    notes.push_back(fmt::format(
        "schedule.recompute_modules changes nothing: schedule.recompute is {}, not selective",
        name(choice.kind)));
  }
  return std::nullopt;
}

std::optional<Diagnostic> resolve_recomputation(Scenario& scenario) {
  const RecomputeChoice& recompute = scenario.schedule.recompute;
  if (recompute.kind != Recompute::layers && recompute.kind != Recompute::selective)
    return std::nullopt;
  bool any = false;
  for (Measurement& measurement : scenario.model.edit().profile.measurements) {
    for (LayerCosts& layer : measurement.layers) {
      if (recompute.kind == Recompute::selective) {
        layer.recomputation = Recomputed::selective;
        any = any || layer.selective;
      } else if (layer.ops && !layer.ops->is_block()) {
        layer.recomputation = Recomputed::nothing;
      }
    }
  }
  if (any || recompute.kind == Recompute::layers) return std::nullopt;
  if (recompute.modules) {
    return input_error(recompute.modules_mark,
                       "schedule.recompute_modules names no module that a layer of this model has");
  }
  return input_error(recompute.mark,
                     "schedule.recompute is 'selective', but no layer states what it recomputes",
                     "selective: {activation: 8 MiB, forward: 10 us} beside a layer's activation; "
                     "plumbline import huggingface writes it");
}

std::optional<Diagnostic> offload_activations(Scenario& scenario, const ClusterChoice& cluster) {
  const std::optional<Marked<double>>& share = scenario.schedule.offload;
  if (!share || share->value == 0) {
    if (cluster.host_link_given)
      scenario.notes.emplace_back(
          "cluster.host_link changes nothing: schedule.offload moves no activations to hosts");
    return std::nullopt;
  }
  const Recompute kind = scenario.schedule.recompute.kind;
  if (kind == Recompute::full || kind == Recompute::layers) {
    return input_error(share->mark,
                       fmt::format("schedule.offload is {:g}, and schedule.recompute keeps inputs "
                                   "alone",
                                   share->value),
                       "schedule.recompute: selective or none, or schedule.offload: 0");
  }
  if (!cluster.host_link) {
    return input_error(share->mark,
                       fmt::format("schedule.offload is {:g}, but the bandwidth of the devices' "
                                   "links to their hosts is not known",
                                   share->value),
                       "cluster.host_link: 50 GB/s, or a cluster.device whose preset has it");
  }
  const OffloadedLayers effect =
      offload_activations(scenario.model.edit().profile, share->value, *cluster.host_link);
  const auto longer = [](std::size_t count, Duration by) {
    return count == 0 ? "none" : fmt::format("{}, by {} in all", count, to_text(by));
  };
  const std::optional<std::int64_t>& batch = scenario.model->profile.measurements.front().batch;
  const bool is_of_run = !batch || *batch == scenario.micro_batch_size;
  scenario.notes.push_back(fmt::format(
      "schedule.offload: {:g} % of what {} layers keep, over {}; forwards that this makes longer: "
      "{}; backwards: {}{}{}",
      100 * share->value, effect.layers, to_text(*cluster.host_link),
      longer(effect.longer_forwards, effect.forward),
      longer(effect.longer_backwards, effect.backward),
      effect.longer_inputs > effect.longer_backwards
          ? fmt::format("; first parts of split backwards: {}",
                        longer(effect.longer_inputs, effect.input))
          : "",
      is_of_run ? "" : fmt::format(" (for micro-batches of {}, as in the profile)", *batch)));
  return std::nullopt;
}

Result<std::vector<std::uint32_t>> recomputed_layers(const RecomputeChoice& choice,
                                                     const Partition& partition) {
  std::vector<std::uint32_t> recomputed;
  if (!choice.leaves_some()) return recomputed;
  PLUMBLINE_CHECK(!choice.as_few_as_fit(), "the number of layers is not settled");
  const std::size_t stages = partition.stages.size();
  const auto* const each = std::get_if<std::int64_t>(&choice.layers);
  const auto* const given = std::get_if<std::vector<std::int64_t>>(&choice.layers);
  if (given && given->size() != stages) {
    return input_error(choice.layers_mark,
                       wrong_length("schedule.recompute_layers", given->size(), stages));
  }
  for (std::size_t s = 0; s < stages; ++s) {
    const auto layers = static_cast<std::int64_t>(partition.stages[s].layers.size());
    if (given && (*given)[s] > layers) {
      return input_error(choice.layers_mark,
                         fmt::format("schedule.recompute_layers[{}] is {}, but stage {} has {} "
                                     "layer{}",
                                     s, (*given)[s], s, layers, layers == 1 ? "" : "s"));
    }
    recomputed.push_back(static_cast<std::uint32_t>(given ? (*given)[s] : std::min(*each, layers)));
  }
  return recomputed;
}

void keep_others(const Partition& partition, const std::vector<std::uint32_t>& recomputed,
                 std::vector<LayerCosts>& layers) {
  for (std::size_t s = 0; s < recomputed.size(); ++s) {
    std::uint32_t left = recomputed[s];
    for (const LayerId layer : partition.stages[s].layers) {
      Recomputed& of_layer = layers[layer.value].recomputation;
      if (of_layer == Recomputed::nothing) continue;
      if (left == 0) {
        of_layer = Recomputed::nothing;
      } else {
        --left;
      }
    }
  }
}

}  // namespace plumbline
