// Keys without which a scenario looks smaller or faster than it trains.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/profile/profile.h"
#include "sim/scenario/cluster_section.h"

namespace plumbline {

/// Which keys of an optimizer's memory the training section gives.
struct OptimizerKeys {
  bool state = false;
  bool gradients = false;
};

/// A note on what usual_adam() stands in for; nothing where both keys are given.
std::optional<std::string> assumed_optimizer(const OptimizerKeys& given, NumberFormat weights);

/// Notes on other keys of a model that is known by its shape, each of whose devices is such a
/// `group`: people give them to their framework, and a prediction without them is still one.
std::vector<std::string> omissions(const ClusterChoice& cluster, const DeviceGroup& group);

}  // namespace plumbline
