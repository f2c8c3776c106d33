// From a scenario to a setup: every choice made.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "sim/setup/resolve_setup.h"

namespace plumbline {

/// The setup of any scenario. Its open choices are decided first, with a note of each: see
/// resolve_plan(). `as`, if given, is the partition of another setup, to be kept. Errors: those of
/// resolve_plan() and of resolve_setup().
Result<TrainingSetup> resolve(const Scenario& scenario, const Partition* as = nullptr);

}  // namespace plumbline
