// The cluster section of a scenario: devices, links, and the GPUs that devices are groups of.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "base/diagnostic.h"
#include "models/hardware/cluster.h"
#include "models/profile/profile.h"
#include "sim/scenario/device_section.h"

namespace plumbline {

class SectionReader;

/// The most single GPUs of a cluster.
inline constexpr std::int64_t kMaxGpus = 1'000'000;

/// The section as it stands there.
struct ClusterChoice {
  Cluster cluster = flat_cluster(1, {});
  bool given = false;  ///< Whether the number of devices is; if not, the plan decides it.
  Mark mark;           ///< Of that number, else of the section.
  std::optional<DeviceChoice> device;
  std::optional<Mark> measured_link;  ///< Where the link is the profile's.
  bool link_given = false;
  bool reserve_given = false;
  bool neighbours_slow = true;
  std::optional<Marked<std::int64_t>> gpus;  ///< In the place of devices.
  std::optional<Marked<std::int64_t>> gpus_per_server;

  /// The GPUs of a server, where there are several servers.
  std::optional<std::int64_t> per_server() const;
};

/// Reads the section. Adds all that is wrong to `problems`.
ClusterChoice read_cluster_section(SectionReader& section, Diagnostics& problems);

/// Where `gpus` are given: makes devices of them, groups of neighbours.
/// Devices of one server have the device's link between each pair of them, others that of its
/// network, and each GPU a network card of its own; where the section gives a link, all have that.
/// Errors: GPUs that groups or servers do not divide; servers of another size than those that the
/// costs of the group were derived for; a network that is needed and not given.
std::optional<Diagnostic> resolve_gpus(ClusterChoice& choice, const DeviceGroup& group);

}  // namespace plumbline
