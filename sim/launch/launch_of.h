// The launch of a scenario: what launchers are to be told so that they run it.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "sim/launch/launch.h"
#include "sim/scenario/scenario.h"
#include "sim/setup/training_setup.h"

namespace plumbline {

/// A launch, and how it differs from the scenario.
struct ScenarioLaunch {
  Launch launch;
  std::vector<std::string> notes;
  std::string order_file;  ///< The CSV of a found order; "" = not written yet.
};

/// The launch of a scenario with this setup: every open choice as it was made. Errors, at the
/// scenario's key: a model that is not given by its config.json; stages that share no device
/// evenly; blocks that are cut in two.
Result<ScenarioLaunch> launch_of(const Scenario& scenario, const TrainingSetup& setup);

}  // namespace plumbline
