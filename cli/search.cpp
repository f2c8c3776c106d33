// `plumbline search`: what a scenario leaves open, tried out on all cores.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <cstdio>
#include <memory>
#include <mutex>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/sweep_options.h"
#include "sim/parallel.h"
#include "sim/search_report.h"

namespace plumbline {
namespace {

struct SearchArguments : ScenarioArguments, RowOptions {
  unsigned jobs = 0;
  bool free = false;
};

/// Evaluates family after family, until all are done or a signal comes.
void evaluate_all(const Search& search, unsigned jobs, SearchTally& tally) {
  std::mutex mutex;
  CountedProgress progress("search", "layouts", search.layouts());
  const InterruptGuard guard;
  keep_freed_memory();
  for_each_parallel(search.families().size(), jobs, InterruptGuard::flag(), [&](std::uint64_t i) {
    FamilyResult result = search.evaluate(search.families()[i], &InterruptGuard::flag());
    const std::lock_guard lock(mutex);
    tally.add(std::move(result));
    progress.tell(tally.done());
  });
}

std::string simulate_command(const SearchArguments& arguments, const Layout& layout) {
  std::string line = "plumbline simulate " + shell_word(arguments.scenario);
  for (const std::string& text : layout.overrides) line += ' ' + shell_word(text);
  return line;
}

int search_all(const SearchArguments& arguments) {
  if (const int code = try_output(arguments.output); code != ExitCode::done) return code;

  // Which layouts there are.
  const auto search = Search::open(arguments.scenario, arguments.overrides, arguments.free);
  if (!search) return fail(search.problems());
  RowOptions numbers = arguments;  // conditions may be on the layout, too
  numbers.where.clear();
  auto rows = read_selection(numbers, {});
  if (!rows) return fail(rows.problems());
  auto selection = select_layouts(*std::move(rows), arguments.where, search->varied_keys());
  if (!selection) return fail(selection.problems());

  // Predict them.
  SearchTally tally(*search);
  evaluate_all(*search, arguments.jobs > 0 ? arguments.jobs : available_cores(), tally);
  const bool stopped = InterruptGuard::interrupted() && tally.done() < search->layouts();

  // Tell the best.
  SearchReport report = std::move(tally).report(*search, *std::move(selection));
  report.file = arguments.scenario;
  if (!report.rows.empty()) {
    report.command = simulate_command(arguments, report.rows.front().layout);
    add_as_it_stands(*search, report);
    if (!stopped) try_other_efficiencies(*search, report);
  }
  const std::string text = arguments.json  ? to_json(report, kVersion)
                           : arguments.csv ? to_csv(report)
                                           : to_table(report);
  if (const int written = write_output(text, arguments.output); written != ExitCode::done)
    return written;
  if (stopped) {
    std::fputs(fmt::format("interrupted: {} of {} layouts are done and told\n", report.done,
                           report.layouts)
                   .c_str(),
               stderr);
    return ExitCode::interrupted;
  }
  if (!report.rows.empty()) return ExitCode::done;
  std::fputs(report.feasible > 0  ? "error: no layout that fits meets the conditions\n"
             : report.misfits > 0 ? "error: no layout fits\n"
                                  : "error: no layout can run\n",
             stderr);
  return ExitCode::infeasible;
}

}  // namespace

void add_search(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<SearchArguments>();
  arguments->top = 10;
  CLI::App* command = app.add_subcommand(
      "search", "find the fastest layout: every value of what the scenario leaves open");
  add_scenario_arguments(*command, *arguments);
  add_row_options(*command, *arguments);
  command->add_flag("--free", arguments->free,
                    "search the keys of the layout that the scenario gives, too, and say how it "
                    "compares");
  command->add_option("--jobs", arguments->jobs, "threads; absent = one a core")
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
  command->callback([arguments, &exit_code] { exit_code = search_all(*arguments); });
}

}  // namespace plumbline
