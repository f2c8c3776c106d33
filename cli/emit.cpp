// Notes that no comment can hold go to stderr.
//
// SPDX-License-Identifier: MIT
#include "cli/emit.h"

#include <fmt/format.h>

#include <CLI/App.hpp>

#include "cli/command.h"
#include "cli/option_checks.h"
#include "sim/launch/launch_writers.h"
#include "sim/report/bill_report.h"

namespace plumbline {
void add_emit_option(CLI::App& command, std::string& launcher) {
  command
      .add_option("--emit", launcher,
                  "print the configuration or command line of this launcher for the layout")
      ->check(one_of(launcher_names()));
}

int emit_launch(const std::string& launcher, const Scenario& scenario, const Outcome& outcome,
                const std::string& output, const std::vector<std::string>& notes,
                const std::string& order_file) {
  auto made = launch_of(scenario, outcome.setup);
  if (!made) return fail(made.problems());
  made->order_file = order_file;
  const auto emitted = emitted_launch(launcher, *made);
  if (!emitted) return fail(emitted.problems());
  say(fmt::format("predicted: {}\n", bill_sentence(outcome)));
  for (const auto* told : {&notes, &outcome.setup.notes, &emitted->notes}) {
    for (const std::string& note : *told) say(fmt::format("note: {}\n", note));
  }
  return write_output(emitted->text, output);
}

}  // namespace plumbline
