// Keys without which a scenario looks smaller or faster than it trains. SPDX-License-Identifier:
// MIT
#pragma once

#include <string>
#include <vector>

#include "models/profile.h"
#include "sim/cluster_section.h"

namespace plumbline {

/// Which keys of an optimizer's memory the training section gives.
struct OptimizerKeys {
  bool state = false;
  bool gradients = false;
};

/// Notes on those of a model that is known by its shape, each of whose devices is such a `group`:
/// people give them to their framework, and a prediction without them is still one.
std::vector<std::string> forgotten_keys(const ClusterChoice& cluster, const DeviceGroup& group,
                                        const OptimizerKeys& optimizer);

}  // namespace plumbline
