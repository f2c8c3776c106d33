// --emit: the flags of a launcher for the layout that a command predicts.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/scenario/scenario.h"
#include "sim/setup/training_setup.h"

namespace CLI {
class App;
}

namespace plumbline {

/// Adds --emit to a subcommand.
void add_emit_option(CLI::App& command, std::string& launcher);

/// Writes the launcher's command line for the scenario with this setup, to stdout or to `output`.
/// Returns the exit code.
int emit_launch(const std::string& launcher, const Scenario& scenario, const TrainingSetup& setup,
                const std::string& output);

}  // namespace plumbline
