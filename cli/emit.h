// --emit: the flags of a launcher for the layout that a command predicts.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "sim/prediction/outcome.h"
#include "sim/scenario/scenario.h"

namespace CLI {
class App;
}

namespace plumbline {

/// Adds --emit to a subcommand.
void add_emit_option(CLI::App& command, std::string& launcher);

/// Writes the launcher's configuration for the scenario with this outcome, to stdout or to
/// `output`. To stderr go what was predicted, `notes`, and those of the outcome and the writer.
/// `order_file` has a found order, if it was written. Returns the exit code.
int emit_launch(const std::string& launcher, const Scenario& scenario, const Outcome& outcome,
                const std::string& output, const std::vector<std::string>& notes = {},
                const std::string& order_file = "");

}  // namespace plumbline
