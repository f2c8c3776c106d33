// --emit: the flags of a launcher for the layout that a command predicts.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/prediction/outcome.h"
#include "sim/scenario/scenario.h"

namespace CLI {
class App;
}

namespace plumbline {

/// Adds --emit to a subcommand.
void add_emit_option(CLI::App& command, std::string& launcher);

/// Writes the launcher's command line for the scenario with this outcome, to stdout or to `output`.
/// What was predicted for it and the notes go to stderr. Returns the exit code.
int emit_launch(const std::string& launcher, const Scenario& scenario, const Outcome& outcome,
                const std::string& output);

}  // namespace plumbline
