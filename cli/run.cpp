// `plumbline run`: execute the schedule for real, and print what was measured.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <memory>

#include "calibrate/real_run.h"
#include "calibrate/synthetic.h"
#include "cli/command.h"
#include "sim/report.h"

namespace plumbline {

void add_run(CLI::App& app, int& exit_code) {
  struct Arguments : ScenarioArguments {};
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("run", "execute the schedule for real");
  add_scenario_arguments(*command, *arguments);
  command->callback([arguments, &exit_code] {
    const auto scenario = load_scenario(*arguments);
    if (!scenario) return void(exit_code = fail(scenario.problems()));
    SyntheticOptions o;
    auto backend = synthetic_backend(o);
    const auto real = run_scenario(*scenario, *backend, {});
    if (!real) return void(exit_code = fail(real.problems()));
    const auto predicted = predict(*scenario);
    exit_code = write_output(to_table(real->outcome, timeline_style("", 100)), "");
    fmt::print(
        "predicted {} measured median {} mean {} q1 {} q3 {} clean {} of {} error {:.3f}% handover "
        "{:.2f}us\n",
        predicted->iteration_time_s, real->time_s.median, real->time_s.mean, real->time_s.q1,
        real->time_s.q3, real->clean, real->iterations.size(),
        100 * (predicted->iteration_time_s / real->time_s.median - 1),
        1e6 * seconds(real->iterations[real->shown].hand_over) /
            double(real->outcome.metrics.operations));
  });
}

}  // namespace plumbline
