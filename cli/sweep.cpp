// `plumbline sweep`: every combination of several values, on all cores.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <memory>

#include "cli/command.h"
#include "cli/sweep_options.h"
#include "cli/work_options.h"
#include "sim/whatif/cost_figures.h"
#include "sim/whatif/run_sweep.h"

namespace plumbline {
namespace {

struct SweepArguments : ScenarioArguments, SweepOptions, WorkArguments {
  std::string table;
  std::string command_line;
};

int sweep_all(const SweepArguments& arguments) {
  const auto shard = read_shard(arguments, arguments, arguments.output, "sweep");
  if (!shard) return fail(shard.problems());
  if (const int code = try_output(arguments.report); code != ExitCode::done) return code;

  // Find the points.
  const auto sweep = Sweep::open(arguments.scenario, arguments.overrides);
  if (!sweep) return fail(sweep.problems());
  auto selection = read_selection(arguments, sweep->header().axes);
  if (!selection) return fail(selection.problems());
  if (const auto first = sweep->scenario(0)) {
    if (const auto wrong = check_figures(*selection, first->rates)) return fail({*wrong});
  }
  const auto pivot = read_pivot(arguments.table, sweep->header().axes);
  if (!pivot) return fail(pivot.problems());
  if (!arguments.output.empty()) {
    if (const int trouble = try_output(arguments.output); trouble != ExitCode::done) return trouble;
  }

  // Evaluate them.
  auto run = [&] {
    WatchedWork work(arguments, *shard, arguments.output, "sweep", "points");
    return run_sweep(*sweep, work.options());
  }();
  if (!run) return fail(run.problems());
  if (run->stopped && run->partial) {
    say(
        fmt::format("interrupted: {} of {} points are in {}; the same command with --resume "
                    "goes on\n",
                    run->result.rows.size(), run->result.points, run->partial->path()));
    return ExitCode::interrupted;
  }

  // Print them.
  if (const auto wrong = check_figures(*selection, run->result.rows)) return fail({*wrong});
  const SweepReport told = report(std::move(run->result), *std::move(selection));
  int written = write_page(told, arguments, arguments.command_line);
  if (written != ExitCode::done) return written;
  written =
      write_output(to_text(told, arguments, *pivot, page_width(arguments.page, arguments.output)),
                   arguments.output);
  if (written != ExitCode::done) return written;
  if (run->partial) run->partial->remove();
  if (run->stopped) {
    say(
        fmt::format("interrupted: {} of {} points are printed; with -o FILE an "
                    "interrupted sweep can go on\n",
                    told.done, told.result.points));
    return ExitCode::interrupted;
  }
  // For a shard, feasibility is only known after the merge.
  return *shard ? ExitCode::done : report_feasibility(told);
}

}  // namespace

void add_sweep(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<SweepArguments>();
  CLI::App* command =
      app.add_subcommand("sweep", "predict every combination: key=1,2,4 key='range(4, 65, 4)'");
  add_scenario_arguments(*command, *arguments);
  add_sweep_options(*command, *arguments);
  add_table_option(*command, arguments->table);
  add_work_options(*command, *arguments);
  command->callback([arguments, command, &exit_code] {
    arguments->command_line = command_line(*command);
    exit_code = sweep_all(*arguments);
  });
}

}  // namespace plumbline
