// The cluster section of a scenario: devices, links, and the GPUs that devices are groups of.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "models/hardware/cluster.h"
#include "models/profile/profile.h"
#include "sim/scenario/cost_rates.h"
#include "sim/scenario/device_section.h"

namespace plumbline {

class SectionReader;

/// The largest number of GPUs in a cluster.
inline constexpr std::int64_t kMaxGpus = 1'000'000;

/// The section as written.
struct ClusterChoice {
  Cluster cluster = flat_cluster(1, {});
  bool given = false;  ///< Whether the number of devices is given; if not, the plan decides it.
  Mark mark;           ///< The place of that number, else of the section.
  std::optional<DeviceChoice> device;
  std::optional<Mark> measured_link;        ///< Set if the link comes from the profile.
  std::optional<BytesPerSecond> host_link;  ///< Of each device to its host's memory, one way.
  bool host_link_given = false;
  bool link_given = false;
  std::vector<Mark> link_marks;  ///< One for each of the cluster's pair_links.
  bool reserve_given = false;
  bool neighbours_slow = true;
  CostRates rates;                           ///< Price, power and pue.
  std::optional<Marked<std::int64_t>> gpus;  ///< Given instead of devices.
  std::optional<Marked<std::int64_t>> gpus_per_server;

  /// The GPUs per server, if there are several servers.
  std::optional<std::int64_t> per_server() const;
};

/// A remark where links between servers are those of the preset's system; nothing else says so.
std::optional<std::string> assumed_network_note(const ClusterChoice& choice);

/// Reads the section. Adds all errors to `problems`.
ClusterChoice read_cluster_section(SectionReader& section, Diagnostics& problems);

/// The error of links between devices that do not exist, if there are any.
std::optional<Diagnostic> check_pair_links(const ClusterChoice& choice);

/// If `gpus` are given, makes devices of them: groups of neighbours. Two devices of one server are
/// connected by the device's link; other pairs are connected by its network. Each GPU has its own
/// network card. A link in the section replaces all of these. Errors: groups or servers that do not
/// divide the GPUs; servers of another size than the costs of the group were derived for; a network
/// that is needed but not given.
std::optional<Diagnostic> resolve_gpus(ClusterChoice& choice, const DeviceGroup& group);

}  // namespace plumbline
