// `plumbline search`: tries the open choices of a scenario on all cores.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/table.h"
#include "cli/command.h"
#include "cli/emit.h"
#include "cli/search_output.h"
#include "cli/work_options.h"
#include "sim/planning/predict.h"
#include "sim/report/search_report.h"
#include "sim/search/missing_kernels.h"
#include "sim/search/run_search.h"
#include "sim/search/search_best.h"
#include "sim/whatif/cost_figures.h"

namespace plumbline {
namespace {

struct SearchArguments : SearchOptions, WorkArguments {
  ScenarioArguments scenario;
  bool free = false;
  bool all = false;     ///< Every layout is simulated.
  std::string emit;     ///< A launcher; "" = the table or data.
  std::string missing;  ///< The file for kernels that were not measured; "" = none.
};

/// Writes the kernels that the table lacks in all layouts of the search.
int write_missing(const Search& search, const SearchPart& part, const std::string& path) {
  const auto kernels = missing_kernels(search, part);
  if (!kernels) return fail(kernels.problems());
  const int code = write_output(kernel_list_csv(*kernels), path);
  if (code == ExitCode::done) {
    say(fmt::format("note: {} without a measured time: {}\n", plural(kernels->size(), "kernel"),
                    path));
  }
  return code;
}

/// The notes that are not among `others`.
std::vector<std::string> without(std::vector<std::string> notes,
                                 const std::vector<std::string>& others) {
  std::erase_if(notes, [&](const std::string& note) {
    return std::find(others.begin(), others.end(), note) != others.end();
  });
  return notes;
}

/// Writes the launcher's command line for the best layout.
int emit_best(const Search& search, SearchPart part, SearchSelection selection,
              const SearchArguments& arguments) {
  const std::vector<std::string>& notes = search.facts().notes;
  const SearchReport told = report(std::move(part), std::move(selection));
  if (told.rows.empty()) {
    say("error: no layout is left whose command line could be written\n");
    return ExitCode::infeasible;
  }
  const auto scenario = search.scenario(told.rows.front().layout);
  if (!scenario) return fail(scenario.problems());
  const auto outcome = predict(*scenario, Evaluation::fastest);
  if (!outcome) return fail(outcome.problems());
  return emit_launch(arguments.emit, *scenario, *outcome, arguments.output,
                     without(notes, outcome->setup.notes));
}

/// Whether nobody asks for more than the best layouts. An interrupted search of all goes on.
bool wants_best_alone(const SearchArguments& arguments, const SearchSelection& selection,
                      const WorkOptions& options) {
  return !arguments.all && arguments.shard.empty() && arguments.report.empty() &&
         arguments.missing.empty() && takes_bounds(selection) &&
         (options.partial_path.empty() || !std::filesystem::exists(options.partial_path));
}

bool has_feasible(const FamilyResult& family) {
  return std::any_of(family.rows.begin(), family.rows.end(),
                     [](const SearchRow& row) { return row.row.feasible(); });
}

bool has_feasible(const SearchPart& part) {
  return std::any_of(part.families.begin(), part.families.end(),
                     [](const FamilyResult& family) { return has_feasible(family); });
}

/// Whether a layout fits, or may fit and does not meet the conditions.
bool may_fit(const SearchPart& part) {
  return std::any_of(part.families.begin(), part.families.end(), [](const FamilyResult& family) {
    return family.slower > 0 || has_feasible(family);
  });
}

/// The best layouts, or all of them; all, too, where none fits, to tell the nearest.
Result<SearchRun> run_for(const Search& search, const SearchSelection& selection,
                          const SearchArguments& arguments, const std::optional<Shard>& shard) {
  const auto watched = [&](auto&& run) {
    const WatchedWork work(arguments, shard, arguments.output, "search", "layouts");
    return run(work.options());
  };
  auto best = watched([&](WorkOptions options) -> std::optional<SearchRun> {
    if (!wants_best_alone(arguments, selection, options)) return std::nullopt;
    options.partial_path.clear();
    return search_best(search, selection, kBestLayouts, options);
  });
  if (best && (best->stopped || may_fit(best->part))) return *std::move(best);
  return watched([&](const WorkOptions& options) { return run_search(search, options); });
}

int search_all(const SearchArguments& arguments) {
  const std::string& output = arguments.output;
  const auto shard = read_shard(arguments, arguments, output, "search");
  if (!shard) return fail(shard.problems());
  for (const std::string& path : {output, arguments.report, arguments.missing}) {
    if (const int code = try_output(path); code != ExitCode::done) return code;
  }

  // Find the layouts.
  const auto search =
      Search::open(arguments.scenario.scenario, arguments.scenario.overrides, arguments.free);
  if (!search) return fail(search.problems());
  auto selection = read_selection(arguments, search->facts());
  if (!selection) return fail(selection.problems());

  if (const auto wrong = check_figures(selection->rows, search->rates())) return fail({*wrong});

  // Predict them.
  auto run = run_for(*search, *selection, arguments, *shard);
  if (!run) return fail(run.problems());
  if (run->stopped && run->partial) {
    say(
        fmt::format("interrupted: {} of {} layouts are in {}; the same command with "
                    "--resume goes on\n",
                    run->done, run->wanted, run->partial->path()));
    return ExitCode::interrupted;
  }

  if (run->stopped && !*shard && (!output.empty() || !has_feasible(run->part))) {
    say(fmt::format("interrupted: {}; with --all -o FILE an interrupted search goes on\n",
                    output.empty() ? "no layout that fits is known yet"
                                   : fmt::format("{} is not written", output)));
    return ExitCode::interrupted;
  }

  // Print them.
  int code = ExitCode::done;
  if (!arguments.missing.empty()) code = write_missing(*search, run->part, arguments.missing);
  if (code != ExitCode::done) return code;
  if (*shard) {
    if (run->stopped) {
      say("interrupted: a part of a shard is of no use; with -o FILE it can go on\n");
      return ExitCode::interrupted;
    }
    code = write_output(to_json(run->part, kVersion), output);
  } else if (!arguments.emit.empty() && !run->stopped) {
    code = emit_best(*search, std::move(run->part), *std::move(selection), arguments);
  } else {
    code = tell_search(std::move(run->part), *std::move(selection), &*search, run->stopped,
                       arguments, arguments.threads);
  }
  if (run->partial && code != ExitCode::file_trouble) run->partial->remove();
  return code;
}

}  // namespace

void add_search(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<SearchArguments>();
  CLI::App* command = app.add_subcommand(
      "search", "find the fastest layout: every value of what the scenario leaves open");
  add_scenario_arguments(*command, arguments->scenario);
  add_sweep_options(*command, *arguments);
  add_distinct_option(*command, arguments->distinct);
  add_emit_option(*command, arguments->emit);
  command->add_flag("--free", arguments->free,
                    "search the keys of the layout that the scenario gives, too, and say how it "
                    "compares");
  command->add_flag(
      "--all", arguments->all,
      "simulate every layout; absent = those alone that may be among the best, by bounds of time "
      "and memory");
  command
      ->add_option(
          "--missing", arguments->missing,
          "write here (CSV) which kernels of all layouts cluster.device.kernels lacks, those with "
          "the largest share of the time first")
      ->type_name("FILE");
  add_work_options(*command, *arguments);
  command->get_option("--emit")->excludes(command->get_option("--shard"));
  command->callback([arguments, command, &exit_code] {
    arguments->output = arguments->scenario.output;
    arguments->page = arguments->scenario.page;
    arguments->command_line = command_line(*command);
    // Ten rows of a table; a part is printed completely.
    if (arguments->top == 0 && arguments->shard.empty()) arguments->top = 10;
    exit_code = search_all(*arguments);
  });
}

}  // namespace plumbline
