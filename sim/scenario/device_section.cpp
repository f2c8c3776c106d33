// The keys of a device.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/device_section.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/quantity.h"
#include "base/section_reader.h"

namespace plumbline {
namespace {

/// The preset that `node` names.
const DevicePreset* preset_of(const Marked<std::string>& name, std::string_view path,
                              Diagnostics& problems) {
  const DevicePreset* preset = find_device_preset(name.value);
  if (preset) return preset;
  const std::string near = did_you_mean(name.value, device_preset_names());
  problems.push_back(input_error(
      name.mark,
      fmt::format("{} is '{}', which is no device that is known", path, clipped(name.value)),
      near.empty() ? fmt::format("one of {} (plumbline list presets), or {{peak: ..., "
                                 "memory_bandwidth: ...}}",
                                 fmt::join(device_preset_names(), ", "))
                   : near + " (plumbline list presets)"));
  return nullptr;
}

void read_kernels(SectionReader& section, DeviceChoice& device) {
  const YamlNode* written = section.child("kernels");
  const auto path = section.file("kernels");
  if (!path) return;
  auto kernels = shared_kernels(path->value);
  if (!kernels) return section.add_file_problems("kernels", path->mark, kernels.problems());
  device.kernels = *std::move(kernels);
  device.kernels_file = written->text;
}

/// The words of a name, in lower case.
std::vector<std::string> words_in(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : lower_case(name)) {
    const bool is_word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (is_word) {
      words.back() += c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  return words;
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

DeviceChoice read_device_keys(SectionReader& section, Diagnostics& problems) {
  DeviceChoice device;
  if (auto name = section.text("preset"))
    device.preset = preset_of(*name, section.path_of("preset"), problems);
  if (!section.has("preset")) {
    section.require("peak", "such as 989 TFLOP/s; or name a preset (plumbline list presets)");
    section.require("memory_bandwidth", "such as 3.35 TB/s; or name a preset");
  }
  if (auto peak = section.flops_per_second("peak")) device.peak = peak->value;
  if (auto peak = section.flops_per_second("fp8_peak")) device.fp8_peak = peak->value;
  if (auto rate = section.bandwidth("memory_bandwidth")) device.memory_bandwidth = rate->value;
  if (auto size = section.bytes("memory")) device.memory = size->value;
  if (auto rate = section.bandwidth("link")) device.link_bandwidth = rate->value;
  if (auto rate = section.bandwidth("network")) device.network_bandwidth = rate->value;
  if (auto share = section.real("efficiency")) {
    device.efficiency = share->value;
    if (share->value <= 0)
      section.error(
          share->mark,
          fmt::format("{} is 0: the device would never be done", section.path_of("efficiency")),
          "the share of its peaks that is counted on, above 0 and at most 1");
  }
  if (auto name = section.choice("stack", "software stack"))
    device.stack = find_software_stack(name->value);
  read_kernels(section, device);
  if (auto share = section.real("link_overlap")) device.link_overlap = share->value;
  if (auto share = section.real("network_overlap")) device.network_overlap = share->value;
  section.finish();
  return device;
}

}  // namespace

std::optional<DeviceChoice> read_device(SectionReader& cluster, Diagnostics& problems) {
  const YamlNode* node = cluster.child("device");
  if (!node) return std::nullopt;
  const std::size_t problems_before = problems.size();
  DeviceChoice device;
  if (node->kind == YamlNode::Kind::scalar) {
    device.preset = preset_of({node->text, node->mark}, cluster.path_of("device"), problems);
  } else {
    auto section = cluster.section("device");
    if (section->is_map()) device = read_device_keys(*section, problems);
  }
  device.mark = node->kind == YamlNode::Kind::scalar ? node->mark : cluster.mark_of("device");
  if (problems.size() != problems_before) return std::nullopt;
  if (device.preset) {
    // A given peak says nothing about the other one, so the preset's is not used beside it.
    if (!device.fp8_peak && !device.peak) device.fp8_peak = device.preset->peak(NumberFormat::fp8);
    if (!device.memory_bandwidth) device.memory_bandwidth = device.preset->memory_bandwidth;
    if (!device.memory) device.memory = device.preset->memory;
    if (!device.link_bandwidth) device.link_bandwidth = device.preset->link_bandwidth;
  }
  return device;
}

void keep_preset(YamlNode& root, const YamlOverride& change) {
  // cluster.device, or the device of an element of cluster.devices
  const bool is_listed = change.path.size() > 1 && change.path[1].text == "devices";
  const std::size_t depth_of_device = is_listed ? 4 : 2;
  if (change.path.size() <= depth_of_device || change.path[0].text != "cluster" ||
      change.path[depth_of_device - 1].text != "device")
    return;
  YamlNode* node = &root;
  for (std::size_t depth = 0; depth < depth_of_device; ++depth) {
    const std::string& key = change.path[depth].text;
    if (node->kind == YamlNode::Kind::sequence) {
      const auto index = parse_count(key);
      if (!index.value || *index.value >= static_cast<std::int64_t>(node->items.size())) return;
      node = &node->items[static_cast<std::size_t>(*index.value)];
      continue;
    }
    YamlNode::Entry* const entry = entry_of(*node, key);
    if (!entry) return;
    node = &entry->value;
  }
  if (node->kind != YamlNode::Kind::scalar) return;
  YamlNode name = std::move(*node);
  *node = YamlNode{};
  node->kind = YamlNode::Kind::map;
  node->mark = name.mark;
  node->entries.push_back({"preset", name.mark, name});
}

Result<DeviceRoofline> roofline_of(const DeviceChoice& device, std::optional<NumberFormat> format) {
  DeviceRoofline roofline;
  const NumberFormat used = format.value_or(NumberFormat::bf16);
  std::optional<FlopsPerSecond> peak = device.peak;
  if (!peak) peak = device.preset->peak(used);
  if (!peak) {
    return input_error(device.mark,
                       fmt::format("cluster.device is '{}', which has no {} arithmetic",
                                   device.preset->name, name_of(used)),
                       "give its peak for what it computes in instead: device: {preset: ..., peak: "
                       "312 TFLOP/s}");
  }
  roofline.name = device.preset && !device.peak
                      ? fmt::format("{} in {}", device.preset->name, name_of(used))
                  : device.preset ? fmt::format("{} with the given peak", device.preset->name)
                                  : "the given device";
  roofline.peak = *peak;
  roofline.fp8_peak = device.fp8_peak;
  if (used == NumberFormat::fp8 && !roofline.fp8_peak) roofline.fp8_peak = peak;
  roofline.memory_bandwidth = *device.memory_bandwidth;
  roofline.efficiency = device.efficiency.value_or(kUsualEfficiency);
  roofline.link_bandwidth = device.link_bandwidth;
  roofline.network_bandwidth = device.network_bandwidth;
  roofline.link_overlap = device.link_overlap.value_or(0);
  roofline.network_overlap = device.network_overlap.value_or(0);
  return roofline;
}

KernelModel kernels_of(const DeviceChoice& device, const DeviceRoofline& roofline) {
  const auto rate = [](const auto& quantity) {
    return quantity ? static_cast<double>(quantity->count) : 0;
  };
  const auto peak = static_cast<double>(roofline.peak.count);
  return {{.traits = device.preset ? kernel_traits(device.preset->name) : usual_kernel_traits(peak),
           .peak = peak,
           .fp8_peak = rate(roofline.fp8_peak),
           .memory_bandwidth = static_cast<double>(roofline.memory_bandwidth.count),
           .link = rate(roofline.link_bandwidth),
           .network = rate(roofline.network_bandwidth)},
          device.stack ? *device.stack : usual_stack(),
          device.kernels};
}

std::optional<std::string> other_device_note(const DeviceChoice& device) {
  if (!device.kernels || !device.preset) return std::nullopt;
  const std::string& measured = device.kernels->table().device;
  const std::vector<std::string> words = words_in(measured);
  const std::vector<std::string> own = words_in(device.preset->name);
  const bool is_own = contains(words, own.front());
  const bool is_other =
      !is_own && std::any_of(device_presets().begin(), device_presets().end(),
                             [&](const DevicePreset& preset) {
                               return contains(words, words_in(preset.name).front());
                             });
  const bool is_card = is_own && contains(words, "pcie") && contains(own, "sxm");
  if (!is_other && !is_card) return std::nullopt;
  return fmt::format("cluster.device.kernels holds times of '{}', and cluster.device is '{}'",
                     clipped(measured), device.preset->name);
}

}  // namespace plumbline
