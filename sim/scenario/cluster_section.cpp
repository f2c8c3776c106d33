// Devices given by their number, or made of GPUs.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/cluster_section.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"
#include "base/section_reader.h"
#include "sim/scenario/plan.h"
#include "sim/scenario/scenario_format.h"

namespace plumbline {
namespace {

class ClusterReader {
 public:
  ClusterReader(SectionReader& section, Diagnostics& problems)
      : section_(section), problems_(problems) {}

  ClusterChoice read() {
    const auto devices = read_count_of_devices();
    choice_.mark = section_.mark_of("devices");
    if (auto kind = section_.choice("slowdown", "kind of slow-down"))
      choice_.neighbours_slow = kind->value == "measured";
    choice_.device = read_device(section_, problems_);
    choice_.link_given = section_.has("link");
    read_gpus();
    if (section_.has("levels")) {
      read_levels(devices);
    } else {
      section_.child("levels");
      choice_.given = devices || choice_.gpus;
      choice_.cluster =
          flat_cluster(devices ? static_cast<std::uint32_t>(devices->value) : 1, read_link());
    }
    read_pair_links();
    read_memory();
    read_host_link();
    read_overlap_slowdown();
    read_cluster_rates(section_, choice_.device ? choice_.device->preset : nullptr, choice_.rates,
                       problems_);
    section_.finish();
    return std::move(choice_);
  }

 private:
  /// A list has been replaced by its number of devices.
  std::optional<Marked<std::int64_t>> read_count_of_devices() {
    const YamlNode* const node = section_.child("devices");
    if (!node || node->kind != YamlNode::Kind::map) return section_.count("devices");
    section_.error(node->mark, "cluster.devices is a map, where a whole number or a list is wanted",
                   "devices: 8, or kinds of devices: [{device: h100-sxm, count: 4}, {count: 4, "
                   "speed: 0.5}]");
    return std::nullopt;
  }

  void read_gpus() {
    choice_.gpus = section_.count("gpus");
    choice_.gpus_per_server = section_.count("gpus_per_server");
    if (choice_.gpus) {
      choice_.mark = choice_.gpus->mark;
      for (const char* key : {"devices", "levels"}) {
        if (!section_.has(key)) continue;
        section_.error(section_.mark_of(key),
                       fmt::format("cluster.{} stands beside cluster.gpus", key),
                       "devices are groups of GPUs, of one where no layer is shared: leave one of "
                       "the two out");
      }
    } else if (choice_.gpus_per_server && !section_.has("gpus")) {
      section_.error(choice_.gpus_per_server->mark,
                     "cluster.gpus_per_server stands without cluster.gpus",
                     "of devices that are counted, cluster.levels says how they are linked");
    }
  }

  void read_memory() {
    const auto memory = section_.bytes("memory");
    const auto reserve = section_.bytes("reserve");
    std::optional<Bytes>& limit = choice_.cluster.memory;
    if (choice_.device) limit = choice_.device->memory;
    if (memory) limit = memory->value;
    choice_.reserve_given = reserve.has_value();
    if (!reserve) return;
    if (!limit) {
      if (problems_.empty())
        section_.error(reserve->mark, "cluster.reserve is given, but no memory that it is part of",
                       "cluster.memory: 80 GiB, or a cluster.device with a memory");
    } else if (reserve->value >= *limit) {
      section_.error(reserve->mark, fmt::format("cluster.reserve is {}, but the memory is {}",
                                                to_text(reserve->value), to_text(*limit)));
    } else {
      *limit = *limit - reserve->value;
      choice_.cluster.reserve = reserve->value;
    }
  }

  void read_host_link() {
    if (choice_.device && choice_.device->preset &&
        choice_.device->preset->host_bandwidth.count > 0)
      choice_.host_link = choice_.device->preset->host_bandwidth;
    const auto rate = section_.bandwidth("host_link");
    choice_.host_link_given = rate.has_value();
    if (rate) choice_.host_link = rate->value;
  }

  void read_overlap_slowdown() {
    constexpr const char* key = "overlap_slowdown";
    OverlapSlowdown& overlap = choice_.cluster.overlap_slowdown;
    const YamlNode* const node = section_.child(key);
    if (!node) return;
    if (node->kind != YamlNode::Kind::map) {
      read_factor(section_, key, overlap.collectives);
    } else if (auto section = section_.section(key)) {
      read_factor(*section, "collectives", overlap.collectives);
      read_factor(*section, "transfers", overlap.transfers);
      section->finish();
    }
  }

  static void read_factor(SectionReader& section, std::string_view key, double& factor) {
    const auto given = section.real(key);
    if (!given) return;
    factor = given->value;
    if (factor < 1) {
      section.error(given->mark,
                    fmt::format("{} is {}, which is less than 1", section.path_of(key), factor),
                    "how many times longer ops take: 1.1");
    }
  }

  static Link read_link_keys(SectionReader& section) {
    Link link;
    if (auto latency = section.duration("latency")) link.latency = latency->value;
    if (auto bandwidth = section.bandwidth("bandwidth")) link.bandwidth = bandwidth->value;
    return link;
  }

  Link read_link() {
    const YamlNode* node = section_.child("link");
    if (!node) return {};
    if (section_.is_word("link", "measured")) {
      choice_.measured_link = node->mark;
      return {};
    }
    if (section_.is_word("link", "device") || section_.is_word("link", "network"))
      return device_link(*node);
    if (section_.check_word("link", {"measured", "device", "network"})) return {};
    auto link_section = section_.section("link");
    if (!link_section) return {};
    Link link = read_link_keys(*link_section);
    link_section->finish();
    return link;
  }

  /// `link: device` and `link: network`: the links that the device itself has.
  Link device_link(const YamlNode& node) {
    const bool network = node.text == "network";
    if (choice_.device) {
      const auto& bandwidth =
          network ? choice_.device->network_bandwidth : choice_.device->link_bandwidth;
      if (bandwidth) return {{}, bandwidth};
    }
    if (!choice_.device && section_.has("device")) return {};  // its errors are reported
    if (network) {
      section_.error(node.mark, "cluster.link is 'network', but cluster.device gives no network",
                     "such as device: {network: 50 GB/s}");
    } else {
      section_.error(node.mark, "cluster.link is 'device', but cluster.device gives no link",
                     "name a preset (plumbline list presets), or give device: {link: 450 GB/s}");
    }
    return {};
  }

  std::vector<DeviceId> device_list(SectionReader& section, std::string_view key) {
    std::vector<DeviceId> devices;
    const auto numbers = section.counts(key);
    for (const std::int64_t number : numbers.value_or(std::vector<std::int64_t>{}))
      devices.push_back({static_cast<std::uint32_t>(number)});
    std::sort(devices.begin(), devices.end());
    const std::size_t least = key == "among" ? 2 : 1;
    if (numbers && devices.size() < least)
      section.error(section.mark_of(key),
                    fmt::format("{} has {} device{}", section.path_of(key), devices.size(),
                                devices.size() == 1 ? "" : "s"),
                    least == 2 ? "two or more: each pair of them has this link" : "one or more");
    if (std::adjacent_find(devices.begin(), devices.end()) != devices.end())
      section.error(section.mark_of(key),
                    fmt::format("{} names a device twice", section.path_of(key)));
    return devices;
  }

  void read_pair_links() {
    if (!section_.has("links")) {
      section_.child("links");
      return;
    }
    const std::vector<YamlNode>* nodes = section_.list("links");
    if (nodes && nodes->empty())
      section_.error(section_.mark_of("links"), "cluster.links is an empty list");
    for (std::size_t i = 0; nodes && i < nodes->size(); ++i) {
      SectionReader section((*nodes)[i], fmt::format("cluster.links[{}]", i), pair_link_format(),
                            problems_);
      PairLink pair;
      if (section.has("among")) {
        for (const char* const key : {"from", "to"}) {
          if (section.has(key))
            section.error(section.mark_of(key),
                          fmt::format("{} stands beside among", section.path_of(key)),
                          "among: all pairs of some devices; from and to: each with each");
        }
        pair.from = pair.to = device_list(section, "among");
        for (const char* const key : {"from", "to"}) section.child(key);
      } else {
        section.child("among");
        section.require("from", "or among, for all pairs of some devices");
        section.require("to", "the devices at the other end");
        pair.from = device_list(section, "from");
        pair.to = device_list(section, "to");
        for (const DeviceId device : pair.from) {
          if (std::binary_search(pair.to.begin(), pair.to.end(), device))
            section.error(section.mark_of("to"),
                          fmt::format("{} has device {}, which stands in from, too",
                                      section.path_of("to"), device.value),
                          "among: all pairs of some devices");
        }
      }
      pair.link = read_link_keys(section);
      section.finish();
      choice_.link_marks.push_back((*nodes)[i].mark);
      choice_.cluster.pair_links.push_back(std::move(pair));
    }
  }

  void read_levels(const std::optional<Marked<std::int64_t>>& devices) {
    choice_.given = true;
    if (choice_.link_given) {
      section_.error(section_.mark_of("link"), "cluster.link stands beside cluster.levels",
                     "the innermost level says what links its devices have");
      section_.child("link");
    }
    section_.child("link");
    const std::vector<YamlNode>* nodes = section_.list("levels");
    if (!nodes) return;
    if (nodes->empty())
      return section_.error(section_.mark_of("levels"), "cluster.levels is an empty list");
    std::vector<Level> levels;
    std::int64_t product = 1;
    const std::size_t problems_before = problems_.size();
    for (std::size_t i = 0; i < nodes->size(); ++i) {
      levels.push_back(read_level((*nodes)[i], i));
      product *= levels.back().size;
      if (product > kMaxDevices) {
        return section_.error(section_.mark_of("levels"),
                              fmt::format("cluster.levels make more than {} devices", kMaxDevices));
      }
    }
    if (devices && devices->value != product && problems_.size() == problems_before) {
      section_.error(
          devices->mark,
          fmt::format("cluster.devices is {}, but the sizes of cluster.levels multiply to {}",
                      devices->value, product),
          "leave devices out, or make them agree");
    }
    choice_.cluster.levels = std::move(levels);
  }

  Level read_level(const YamlNode& node, std::size_t index) {
    SectionReader section(node, fmt::format("cluster.levels[{}]", index), level_format(),
                          problems_);
    section.require("size");
    Level level;
    level.name = fmt::format("level {}", index);
    if (auto name = section.text("name")) level.name = name->value;
    if (auto size = section.count("size")) level.size = static_cast<std::uint32_t>(size->value);
    if (auto cards = section.choice("cards", "kind of network cards")) {
      level.own_cards = cards->value == "each";
      if (index == 0)
        section.error(cards->mark, "the innermost level has no network cards",
                      "each pair of its devices has a link of its own anyway: leave cards out");
    }
    level.link = read_link_keys(section);
    section.finish();
    return level;
  }

  SectionReader& section_;
  Diagnostics& problems_;
  ClusterChoice choice_;
};

Diagnostic undivided(const Marked<std::int64_t>& whole, std::string_view key, std::string_view by,
                     std::int64_t part, std::string help) {
  return input_error(
      whole.mark, fmt::format("{} is {}, which {} of {} do not divide", key, whole.value, by, part),
      std::move(help));
}

}  // namespace

std::optional<std::int64_t> ClusterChoice::per_server() const {
  if (!gpus || !gpus_per_server || gpus->value <= gpus_per_server->value) return std::nullopt;
  return gpus_per_server->value;
}

std::optional<std::string> assumed_network_note(const ClusterChoice& choice) {
  if (!choice.device || choice.device->assumed_network.empty()) return std::nullopt;
  return fmt::format("the network between servers is taken to be {}: {} (cluster.device.network)",
                     to_text(*choice.device->network_bandwidth), choice.device->assumed_network);
}

ClusterChoice read_cluster_section(SectionReader& section, Diagnostics& problems) {
  return ClusterReader(section, problems).read();
}

std::optional<Diagnostic> check_pair_links(const ClusterChoice& choice) {
  if (!choice.given) return std::nullopt;
  const std::uint32_t devices = choice.cluster.device_count();
  for (std::size_t i = 0; i < choice.cluster.pair_links.size(); ++i) {
    const PairLink& pair = choice.cluster.pair_links[i];
    const DeviceId last = std::max(pair.from.back(), pair.to.back());
    if (last.value < devices) continue;
    return input_error(choice.link_marks[i],
                       fmt::format("cluster.links[{}] names device {}, but the devices are 0 to {}",
                                   i, last.value, devices - 1));
  }
  return std::nullopt;
}

std::optional<Diagnostic> resolve_gpus(ClusterChoice& choice, const DeviceGroup& devices_of) {
  if (!choice.gpus) return std::nullopt;
  const std::int64_t group = devices_of.devices;
  const Marked<std::int64_t>& gpus = *choice.gpus;
  if (gpus.value % group != 0)
    return undivided(gpus, "cluster.gpus", "groups", group,
                     "a device is a group of GPUs that share layers, samples or experts");
  const std::int64_t devices = gpus.value / group;
  if (devices > kMaxDevices) {
    return input_error(
        gpus.mark, fmt::format("{} GPUs in groups of {} are {} devices, more than {}", gpus.value,
                               group, devices, kMaxDevices));
  }
  const auto count = static_cast<std::uint32_t>(devices);
  std::vector<Level>& levels = choice.cluster.levels;
  levels.front().size = count;
  const auto per_server = choice.per_server();
  if (per_server) {
    if (gpus.value % *per_server != 0)
      return undivided(gpus, "cluster.gpus", "servers", *per_server, "servers are filled");
    if (const auto& derived = devices_of.devices_per_server; derived && *derived != *per_server) {
      return input_error(choice.gpus_per_server->mark,
                         fmt::format("cluster.gpus_per_server is {}, but the model's group has "
                                     "devices_per_server {}",
                                     *per_server, *derived),
                         "its traffic over link and network was derived for that");
    }
    if (std::max(group, *per_server) % std::min(group, *per_server) != 0)
      return undivided(*choice.gpus_per_server, "cluster.gpus_per_server", "groups", group,
                       "servers hold several groups, or groups several servers");
  }
  if (choice.link_given || !choice.device) return std::nullopt;

  // No link is given: use the device's own link and network.
  DeviceChoice& device = *choice.device;
  if (per_server && !device.network_bandwidth && device.preset && !device.preset->network.empty()) {
    device.network_bandwidth = device.preset->network_bandwidth;
    device.assumed_network = device.preset->network;
  }
  if (per_server && !device.network_bandwidth) {
    return input_error(choice.gpus_per_server->mark,
                       fmt::format("{} GPUs are several servers of {}, but cluster.device gives no "
                                   "network between them",
                                   gpus.value, *per_server),
                       "device: {preset: h100-sxm, network: 50 GB/s}, that of one GPU's own card; "
                       "or cluster.link for all");
  }
  if (!per_server) {
    levels.front().link.bandwidth = device.link_bandwidth;
  } else if (group >= *per_server) {
    levels.front().link.bandwidth = device.network_bandwidth;
  } else {
    const auto in_server = static_cast<std::uint32_t>(*per_server / group);
    levels = {{"server", in_server, {{}, device.link_bandwidth}},
              {"cluster", count / in_server, {{}, device.network_bandwidth}, /*own_cards=*/true}};
  }
  return std::nullopt;
}

}  // namespace plumbline
