// One reading for each kind of device, and what the readings differ in.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/unlike_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/section_reader.h"
#include "sim/scenario/scenario_format.h"

namespace plumbline {
namespace {

constexpr double kLeastSpeed = 1e-6;

/// An entry of the list.
struct DeviceEntry {
  std::string path;  ///< "cluster.devices[1]".
  Mark mark;
  std::string name;
  std::int64_t count = 1;
  double speed = 1;
  const YamlNode* device = nullptr;  ///< Null: that of cluster.device.
  const YamlNode* memory = nullptr;
  const YamlNode* link = nullptr;
};

const YamlNode* listed_devices(const YamlNode& root) {
  const YamlNode* const cluster = value_of(root, "cluster");
  return cluster ? value_of(*cluster, "devices") : nullptr;
}

/// The name of a kind: as given, that of its device, or its speed.
std::string name_of(const DeviceEntry& entry) {
  if (!entry.name.empty()) return entry.name;
  std::string name;
  if (entry.device) {
    const YamlNode* const preset = value_of(*entry.device, "preset");
    name = preset ? preset->text : entry.device->text;
  }
  if (entry.speed != 1) name += fmt::format("{}{:g}x", name.empty() ? "" : " ", entry.speed);
  return name.empty() ? "usual" : name;
}

DeviceEntry read_entry(const YamlNode& node, std::string path, Diagnostics& problems) {
  DeviceEntry entry;
  entry.path = std::move(path);
  entry.mark = node.mark;
  if (node.kind != YamlNode::Kind::map) {
    problems.push_back(
        input_error(node.mark, fmt::format("{} is no kind of devices", entry.path),
                    "such as {device: h100-sxm, count: 4}, or {count: 4, speed: 0.5}"));
    return entry;
  }
  SectionReader section(node, entry.path, device_run_format(), problems);
  section.require("count", "how many devices of this kind there are");
  if (auto name = section.text("name")) entry.name = name->value;
  if (auto count = section.count("count")) entry.count = count->value;
  if (auto speed = section.real("speed")) {
    entry.speed = speed->value;
    if (speed->value < kLeastSpeed)
      section.error(
          speed->mark,
          fmt::format("{}.speed is {:g}, less than {:g}", entry.path, speed->value, kLeastSpeed),
          "0.5 takes twice the times of the model");
  }
  section.bytes("memory");  // for its errors
  entry.memory = section.child("memory");
  entry.device = section.child("device");
  entry.link = section.child("link");
  section.finish();
  return entry;
}

bool is_same(const YamlNode& a, const YamlNode& b) {
  return a.kind == b.kind && a.text == b.text &&
         std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), is_same) &&
         std::equal(a.entries.begin(), a.entries.end(), b.entries.begin(), b.entries.end(),
                    [](const YamlNode::Entry& x, const YamlNode::Entry& y) {
                      return x.key == y.key && is_same(x.value, y.value);
                    });
}

/// Whether two entries differ in their names and links alone.
bool is_same_kind(const DeviceEntry& a, const DeviceEntry& b) {
  const auto same = [](const YamlNode* x, const YamlNode* y) {
    return x == y || (x && y && is_same(*x, *y));
  };
  return a.speed == b.speed && same(a.device, b.device) && same(a.memory, b.memory);
}

/// The key of a map; put in front if it is not there.
YamlNode& put(YamlNode& map, const std::string& key, YamlNode value) {
  if (YamlNode::Entry* const entry = entry_of(map, key)) return entry->value = std::move(value);
  const Mark mark = value.mark;
  map.entries.insert(map.entries.begin(), {key, mark, std::move(value)});
  return map.entries.front().value;
}

/// The tree as if all devices were of one kind.
YamlNode tree_of(const YamlNode& root, const DeviceEntry& entry, std::int64_t devices,
                 bool with_link) {
  YamlNode tree = root;
  YamlNode& cluster = entry_of(tree, "cluster")->value;
  YamlNode& count = entry_of(cluster, "devices")->value;
  const Mark mark = count.mark;
  count = YamlNode{};
  count.kind = YamlNode::Kind::scalar;
  count.text = std::to_string(devices);
  count.mark = mark;
  if (entry.device) put(cluster, "device", *entry.device);
  if (entry.memory) put(cluster, "memory", *entry.memory);
  if (entry.link && with_link) put(cluster, "link", *entry.link);
  return tree;
}

/// The mean of a figure over all devices; nothing if some kind does not have it.
template <typename Figure>
std::optional<double> mean_over(const std::vector<DeviceEntry>& entries,
                                const std::vector<Scenario>& kinds, const Figure& figure) {
  double sum = 0;
  double devices = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::optional<double> one = figure(kinds[i]);
    if (!one) return std::nullopt;
    sum += *one * static_cast<double>(entries[i].count);
    devices += static_cast<double>(entries[i].count);
  }
  return sum / devices;
}

/// Errors of the entries beside each other, and beside the rest of the section.
void check_entries(const YamlNode& root, const std::vector<DeviceEntry>& entries,
                   Diagnostics& problems) {
  const YamlNode& cluster = *value_of(root, "cluster");
  const YamlNode* const device = value_of(cluster, "device");
  if (device && std::all_of(entries.begin(), entries.end(),
                            [](const DeviceEntry& entry) { return entry.device; })) {
    problems.push_back(input_error(device->mark,
                                   "cluster.device is given, but each of cluster.devices has its "
                                   "own",
                                   "leave cluster.device out"));
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const DeviceEntry& entry = entries[i];
    for (std::size_t j = 0; j < i && !entry.name.empty(); ++j) {
      if (entries[j].name != entry.name) continue;
      problems.push_back(
          input_error(entry.mark, fmt::format("{} has the name of {}, '{}'", entry.path,
                                              entries[j].path, clipped(entry.name))));
    }
    if (!entry.link || !value_of(cluster, "levels")) continue;
    problems.push_back(input_error(entry.link->mark,
                                   fmt::format("{}.link stands beside cluster.levels", entry.path),
                                   "the levels link all devices; cluster.links gives some pairs "
                                   "links of their own"));
  }
}

/// Errors of a reading for one kind, where they belong.
Diagnostics told_of(const DeviceEntry& entry, Diagnostics problems) {
  for (Diagnostic& problem : problems) {
    for (const auto& [key, node] :
         {std::pair{"device", entry.device}, std::pair{"link", entry.link}}) {
      const std::string written = fmt::format("cluster.{}", key);
      const bool is_of_key =
          problem.message.starts_with(written + ' ') || problem.message.starts_with(written + '.');
      if (node && is_of_key)
        problem.message.replace(0, written.size(), fmt::format("{}.{}", entry.path, key));
    }
  }
  return problems;
}

/// What one device draws and costs, on average over all of them.
void take_mean_rates(const std::vector<DeviceEntry>& entries, const std::vector<Scenario>& kinds,
                     CostRates& rates) {
  const auto power = mean_over(entries, kinds, [](const Scenario& kind) {
    const auto& given = kind.rates.power;
    return given ? std::optional(static_cast<double>(given->milliwatts)) : std::nullopt;
  });
  rates.power.reset();
  if (power) rates.power = Power{std::llround(*power)};
  const auto price = mean_over(entries, kinds, [](const Scenario& kind) {
    const auto& given = kind.rates.price;
    return given ? std::optional(given->per_hour) : std::nullopt;
  });
  if (price) {
    rates.price->per_hour = *price;
  } else {
    rates.price.reset();
  }
}

/// Errors: a memory that is known of some kinds only.
std::optional<Diagnostic> check_memories(const std::vector<DeviceEntry>& entries,
                                         const std::vector<Scenario>& kinds) {
  for (std::size_t i = 1; i < kinds.size(); ++i) {
    const bool first_has = kinds.front().cluster.memory.has_value();
    if (kinds[i].cluster.memory.has_value() == first_has) continue;
    const std::size_t without = first_has ? i : 0;
    return input_error(entries[without].mark,
                       fmt::format("{} gives no memory, but {} does", entries[without].path,
                                   entries[first_has ? 0 : i].path),
                       "memory: 80 GiB for each, or for none");
  }
  return std::nullopt;
}

/// A remark where the kinds are several devices, but all times are the model's own.
void note_same_times(const std::vector<DeviceEntry>& entries, const Scenario& first,
                     std::vector<std::string>& notes) {
  const bool any_speed = std::any_of(entries.begin(), entries.end(),
                                     [](const DeviceEntry& entry) { return entry.speed != 1; });
  const bool any_device =
      std::any_of(entries.begin(), entries.end(), [](const DeviceEntry& e) { return e.device; });
  if (any_speed || !any_device || first.estimated_for || first.kernels) return;
  notes.emplace_back(
      "the model gives its own times, which hold for every device: cluster.devices[1].speed: 0.5 "
      "says that one is half as fast");
}

}  // namespace

bool lists_devices(const YamlNode& root) {
  const YamlNode* const devices = listed_devices(root);
  return devices && devices->kind == YamlNode::Kind::sequence;
}

Result<Scenario> read_unlike_devices(const YamlNode& root,
                                     const std::function<Result<Scenario>(const YamlNode&)>& read) {
  Diagnostics problems;
  const YamlNode& list = *listed_devices(root);
  if (list.items.empty()) return input_error(list.mark, "cluster.devices is an empty list");
  std::vector<DeviceEntry> entries;
  std::int64_t devices = 0;
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    entries.push_back(read_entry(list.items[i], fmt::format("cluster.devices[{}]", i), problems));
    devices += entries.back().count;
  }
  if (problems.empty()) check_entries(root, entries, problems);
  if (!problems.empty()) return problems;
  if (devices > kMaxDevices) {
    return input_error(list.mark, fmt::format("cluster.devices are {} devices, more than {}",
                                              devices, kMaxDevices));
  }
  std::vector<Scenario> kinds;
  std::vector<DeviceRun> runs;
  for (const DeviceEntry& entry : entries) {
    const auto first = static_cast<std::size_t>(
        std::find_if(entries.begin(), entries.end(),
                     [&](const DeviceEntry& other) { return is_same_kind(other, entry); }) -
        entries.begin());
    auto kind = first < kinds.size() ? Result<Scenario>(kinds[first])
                                     : read(tree_of(root, entry, devices, false));
    if (!kind) return told_of(entry, kind.problems());
    DeviceRun run{name_of(entry), static_cast<std::uint32_t>(entry.count),
                  static_cast<std::uint32_t>(first), kind->cluster.memory, std::nullopt};
    if (entry.link) {
      const auto linked = read(tree_of(root, entry, devices, true));
      if (!linked) return told_of(entry, linked.problems());
      run.link = linked->cluster.levels.front().link;
    }
    runs.push_back(std::move(run));
    kinds.push_back(*std::move(kind));
  }
  if (auto refused = check_memories(entries, kinds)) return *refused;
  Scenario scenario = kinds.front();
  scenario.cluster.runs = std::move(runs);
  scenario.cluster.memory = scenario.cluster.least_memory();
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    scenario.unlike.push_back({kinds[i].model, entries[i].speed, kinds[i].peak});
    for (std::string& note : kinds[i].notes) {
      if (std::find(scenario.notes.begin(), scenario.notes.end(), note) == scenario.notes.end())
        scenario.notes.push_back(std::move(note));
    }
  }
  take_mean_rates(entries, kinds, scenario.rates);
  note_same_times(entries, kinds.front(), scenario.notes);
  return scenario;
}

}  // namespace plumbline
