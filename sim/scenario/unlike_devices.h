// Devices that are not all alike: cluster.devices as a list.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>

#include "base/yaml.h"
#include "sim/scenario/scenario.h"

namespace plumbline {

/// Whether cluster.devices is a list of kinds of devices.
bool lists_devices(const YamlNode& root);

/// Reads a scenario that lists its devices: once for each kind, as if all devices were of it. The
/// result is that of the first kind, with the runs of its cluster and what differs in each. `read`
/// reads a tree with a number of devices. Errors: wrong entries; those of `read`; a memory that
/// some kinds have and others have not.
Result<Scenario> read_unlike_devices(const YamlNode& root,
                                     const std::function<Result<Scenario>(const YamlNode&)>& read);

}  // namespace plumbline
