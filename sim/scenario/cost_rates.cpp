// Prices and powers, alone or by preset.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/cost_rates.h"

#include <fmt/format.h>

#include "base/section_reader.h"
#include "models/hardware/device_presets.h"

namespace plumbline {
namespace {

/// A figure of the cluster section: a value of its own, or a map of presets with the device's in
/// it.
class RateReader {
 public:
  RateReader(SectionReader& cluster, const DevicePreset* device, Diagnostics& problems)
      : cluster_(cluster), device_(device), problems_(problems) {}

  template <class Value>
  std::optional<Marked<Value>> read(
      std::string_view key,
      std::optional<Marked<Value>> (SectionReader::*value_of)(std::string_view)) {
    const YamlNode* node = cluster_.child(key);
    if (!node || node->kind != YamlNode::Kind::map) return (cluster_.*value_of)(key);
    SectionReader by_preset(*node, cluster_.path_of(key), problems_);
    std::optional<Marked<Value>> found;
    for (const YamlNode::Entry& entry : node->entries) {
      const DevicePreset* const preset = find_device_preset(entry.key);
      if (!preset) {
        refuse(entry, key);
        continue;
      }
      const auto value = (by_preset.*value_of)(entry.key);
      if (preset == device_) found = value;
    }
    if (!found && problems_.empty()) {
      cluster_.error(cluster_.mark_of(key),
                     device_
                         ? fmt::format("cluster.{} has none for '{}', the device of the cluster",
                                       key, device_->name)
                         : fmt::format("cluster.{} is by preset, but cluster.device is none", key),
                     device_ ? "" : "one value for all, or device: {preset: h100-sxm}");
    }
    return found;
  }

 private:
  void refuse(const YamlNode::Entry& entry, std::string_view key) {
    const std::string near = did_you_mean(entry.key, device_preset_names());
    cluster_.error(
        entry.mark,
        fmt::format("cluster.{} has the key '{}', which is no preset", key, clipped(entry.key)),
        near.empty() ? "plumbline list presets" : near);
  }

  SectionReader& cluster_;
  const DevicePreset* device_;
  Diagnostics& problems_;
};

}  // namespace

void read_cluster_rates(SectionReader& cluster, const DevicePreset* device, CostRates& rates,
                        Diagnostics& problems) {
  RateReader reader(cluster, device, problems);
  if (const auto price = reader.read("price", &SectionReader::price)) rates.price = price->value;
  if (const auto power = reader.read("power", &SectionReader::power)) rates.power = power->value;
  const auto pue = cluster.real("pue");
  if (!pue) return;
  rates.pue = pue->value;
  if (pue->value < 1) {
    cluster.error(pue->mark, fmt::format("cluster.pue is {}, which is below 1", pue->value),
                  "the energy of the whole building over that of what computes in it");
  } else if (!cluster.has("power")) {
    cluster.error(pue->mark, "cluster.pue is given, but no power that it is a factor of",
                  "cluster.power: 700 W, that of one GPU");
  }
}

TokenKeys read_token_keys(SectionReader& training) {
  return {training.tokens("tokens"), training.count("sequence")};
}

std::optional<Diagnostic> resolve_tokens(const TokenKeys& keys,
                                         std::optional<std::int64_t> sequence, CostRates& rates) {
  if (keys.sequence && sequence) {
    return input_error(
        keys.sequence->mark,
        fmt::format("training.sequence stands beside the model's own, {}", *sequence),
        "leave it out: it is for models that are given by their layers");
  }
  rates.per_sample = keys.sequence ? std::optional(keys.sequence->value) : sequence;
  if (!keys.tokens) return std::nullopt;
  rates.tokens = keys.tokens->value;
  if (rates.per_sample) return std::nullopt;
  return input_error(
      keys.tokens->mark,
      "training.tokens is given, but the model does not say how many tokens a sample "
      "has",
      "training.sequence: 4096");
}

}  // namespace plumbline
