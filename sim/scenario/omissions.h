// Missing keys that make a scenario look smaller or faster than a real training.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/profile/profile.h"
#include "sim/scenario/cluster_section.h"

namespace plumbline {

/// The keys of an optimizer's memory that the training section gives.
struct OptimizerKeys {
  bool state = false;
  bool gradients = false;
};

/// A note on the keys that usual_adam() replaces; nothing if both are given.
std::optional<std::string> assumed_optimizer(const OptimizerKeys& given, NumberFormat weights);

/// Notes on other missing keys, for a model that is known by its shape; each device is such a
/// `group`. People give these keys to their framework, but a prediction works without them.
std::vector<std::string> omissions(const ClusterChoice& cluster, const DeviceGroup& group);

}  // namespace plumbline
