// One launcher so far.
//
// SPDX-License-Identifier: MIT
#include "cli/emit.h"

#include <CLI/App.hpp>

#include "cli/command.h"
#include "cli/option_checks.h"
#include "sim/launch/megatron_writer.h"

namespace plumbline {

void add_emit_option(CLI::App& command, std::string& launcher) {
  command
      .add_option("--emit", launcher,
                  "print the command line of this launcher for the layout, and nothing else")
      ->check(one_of({"megatron"}));
}

int emit_launch(const std::string&, const Scenario& scenario, const TrainingSetup& setup,
                const std::string& output) {
  const auto made = launch_of(scenario, setup);
  if (!made) return fail(made.problems());
  const auto text = megatron_text(*made);
  return text ? write_output(*text, output) : fail(text.problems());
}

}  // namespace plumbline
