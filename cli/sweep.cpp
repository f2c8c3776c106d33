// `plumbline sweep`: every combination of several values, on all cores.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/sweep.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <memory>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/partial_file.h"
#include "cli/progress.h"
#include "cli/sweep_options.h"
#include "cli/work_options.h"
#include "sim/whatif/sweep_file.h"

namespace plumbline {
namespace {

struct SweepArguments : ScenarioArguments, SweepOptions, WorkOptions {
  std::string command_line;
};

/// The points of the shard that have no row yet.
std::vector<std::uint64_t> open_points(const SweepResult& result) {
  std::vector<bool> done(result.points, false);
  for (const SweepRow& row : result.rows) done[row.point] = true;
  const Shard shard = result.shard.value_or(Shard{});
  std::vector<std::uint64_t> open;
  open.reserve(static_cast<std::size_t>(result.points / shard.count + 1));
  for (std::uint64_t point = 0; point < result.points; ++point) {
    if (!done[point] && shard.holds(point)) open.push_back(point);
  }
  return open;
}

/// Evaluates what is open, until it is done or a signal comes. Errors: a row that cannot be kept.
std::optional<Diagnostic> evaluate_all(const Sweep& sweep, unsigned jobs, SweepResult& result,
                                       PartialFile* partial) {
  const std::vector<std::uint64_t> open = open_points(result);
  result.rows.reserve(result.rows.size() + open.size());
  std::uint64_t done = 0;
  CountedProgress progress("sweep", "points", open.size());
  return work_through(
      open.size(), jobs, partial, [&](std::uint64_t count) { progress.tell(count); },
      [&](std::uint64_t i) {
        auto row = std::make_shared<SweepRow>(sweep.evaluate(open[i]));
        std::string line = partial ? row_json(result, *row) : "";
        return Finished{std::move(line), [&, row] {
                          result.rows.push_back(std::move(*row));
                          return ++done;
                        }};
      });
}

int sweep_all(const SweepArguments& arguments) {
  const auto shard = read_shard(arguments, arguments, arguments.output, "sweep");
  if (!shard) return fail(shard.problems());
  if (const int code = try_output(arguments.report); code != ExitCode::done) return code;

  // Which points there are, and which of them have a row already.
  const auto sweep = Sweep::open(arguments.scenario, arguments.overrides);
  if (!sweep) return fail(sweep.problems());
  auto selection = read_selection(arguments, sweep->header().axes);
  if (!selection) return fail(selection.problems());
  SweepResult result = sweep->header();
  result.shard = *shard;
  std::optional<PartialFile> partial;
  if (!arguments.output.empty()) {
    if (const int trouble = try_output(arguments.output); trouble != ExitCode::done) return trouble;
    auto opened = PartialFile::open(
        arguments.output + ".partial", "sweep", partial_header(result, kVersion), arguments.resume,
        [&](const std::shared_ptr<const Source>& source) -> Result<std::size_t> {
          auto kept = parse_partial(source, result, kVersion);
          if (!kept) return kept.problems();
          result.rows = std::move(kept->rows);
          return kept->kept_bytes;
        });
    if (!opened) return fail(opened.problems());
    partial.emplace(*std::move(opened));
  }

  // Evaluate them.
  const auto failure =
      evaluate_all(*sweep, arguments.jobs(), result, partial ? &*partial : nullptr);
  if (failure) return fail({*failure});
  const bool stopped = InterruptGuard::interrupted() && !open_points(result).empty();
  if (stopped && partial) {
    std::fputs(fmt::format("interrupted: {} of {} points are in {}; the same command with --resume "
                           "goes on\n",
                           result.rows.size(), result.points, partial->path())
                   .c_str(),
               stderr);
    return ExitCode::interrupted;
  }

  // Tell them.
  const SweepReport told = report(std::move(result), *std::move(selection));
  int written = write_page(told, arguments, arguments.command_line);
  if (written != ExitCode::done) return written;
  written = write_output(to_text(told, arguments), arguments.output);
  if (written != ExitCode::done) return written;
  if (partial) partial->remove();
  if (stopped) {
    std::fputs(fmt::format("interrupted: {} of {} points are done and told; with -o FILE an "
                           "interrupted sweep can go on\n",
                           told.done, told.result.points)
                   .c_str(),
               stderr);
    return ExitCode::interrupted;
  }
  // Of a shard it shows when all are together.
  return *shard ? ExitCode::done : report_feasibility(told);
}

}  // namespace

void add_sweep(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<SweepArguments>();
  CLI::App* command =
      app.add_subcommand("sweep", "predict every combination: key=1,2,4 key='range(4, 65, 4)'");
  add_scenario_arguments(*command, *arguments);
  add_sweep_options(*command, *arguments);
  add_work_options(*command, *arguments);
  command->callback([arguments, command, &exit_code] {
    arguments->command_line = command_line(*command);
    exit_code = sweep_all(*arguments);
  });
}

}  // namespace plumbline
