// `plumbline search`: what a scenario leaves open, tried out on all cores.
//
// SPDX-License-Identifier: MIT
#include "sim/search/search.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <cstdio>
#include <memory>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/partial_file.h"
#include "cli/progress.h"
#include "cli/search_output.h"
#include "cli/work_options.h"
#include "sim/search/search_file.h"

namespace plumbline {
namespace {

struct SearchArguments : SearchOptions, WorkOptions {
  ScenarioArguments scenario;
  bool free = false;
};

/// The families of the shard that are not done yet.
std::vector<std::uint64_t> open_families(const Search& search, const SearchPart& part) {
  std::vector<bool> done(search.families().size(), false);
  for (const FamilyResult& result : part.families) done[result.family] = true;
  const Shard shard = part.shard.value_or(Shard{});
  std::vector<std::uint64_t> open;
  for (std::uint64_t i = 0; i < done.size(); ++i) {
    if (!done[i] && shard.holds(i)) open.push_back(i);
  }
  return open;
}

/// Evaluates what is open, until it is done or a signal comes. Errors: a family that cannot be
/// kept.
std::optional<Diagnostic> evaluate_all(const Search& search, unsigned jobs, SearchPart& part,
                                       PartialFile* partial) {
  const std::vector<std::uint64_t> open = open_families(search, part);
  std::uint64_t layouts = 0;
  for (const std::uint64_t i : open) layouts += search.families()[i].layouts();
  std::uint64_t done = 0;
  CountedProgress progress("search", "layouts", layouts);
  return work_through(
      open.size(), jobs, partial, [&](std::uint64_t count) { progress.tell(count); },
      [&](std::uint64_t i) {
        const LayoutFamily& family = search.families()[open[i]];
        auto result =
            std::make_shared<FamilyResult>(search.evaluate(family, &InterruptGuard::flag()));
        const std::uint64_t evaluated = result->rows.size() + result->passed_over;
        const bool whole = evaluated == family.layouts();
        return Finished{partial && whole ? family_json(*result) : "", [&, result, evaluated] {
                          part.families.push_back(std::move(*result));
                          return done += evaluated;
                        }};
      });
}

/// Opens the file that keeps what is done, and reads what it has. Errors: those of PartialFile.
Result<PartialFile> keep_in(const std::string& output, bool resume, SearchPart& part) {
  return PartialFile::open(output + ".partial", "search",
                           partial_header(part.facts, part.shard, kVersion), resume,
                           [&](const std::shared_ptr<const Source>& source) -> Result<std::size_t> {
                             auto kept = parse_partial(source, part.facts, part.shard, kVersion);
                             if (!kept) return kept.problems();
                             part.families = std::move(kept->families);
                             return kept->kept_bytes;
                           });
}

int search_all(const SearchArguments& arguments) {
  const std::string& output = arguments.output;
  const auto shard = read_shard(arguments, arguments, output, "search");
  if (!shard) return fail(shard.problems());
  for (const std::string& path : {output, arguments.report}) {
    if (const int code = try_output(path); code != ExitCode::done) return code;
  }

  // Which layouts there are, and which of them are done already.
  const auto search =
      Search::open(arguments.scenario.scenario, arguments.scenario.overrides, arguments.free);
  if (!search) return fail(search.problems());
  auto selection = read_selection(arguments, search->facts());
  if (!selection) return fail(selection.problems());
  SearchPart part{nullptr, search->facts(), *shard, {}};
  std::optional<PartialFile> partial;
  if (!output.empty()) {
    auto opened = keep_in(output, arguments.resume, part);
    if (!opened) return fail(opened.problems());
    partial.emplace(*std::move(opened));
  }

  // Predict the others.
  const auto failure = evaluate_all(*search, arguments.jobs(), part, partial ? &*partial : nullptr);
  if (failure) return fail({*failure});
  std::uint64_t done = 0;
  std::uint64_t wanted = 0;
  for (const FamilyResult& result : part.families) done += result.rows.size() + result.passed_over;
  for (const LayoutFamily& family : search->families()) {
    if (shard->value_or(Shard{}).holds(family.number)) wanted += family.layouts();
  }
  const bool stopped = InterruptGuard::interrupted() && done < wanted;
  if (stopped && partial) {
    std::fputs(fmt::format("interrupted: {} of {} layouts are in {}; the same command with "
                           "--resume goes on\n",
                           done, wanted, partial->path())
                   .c_str(),
               stderr);
    return ExitCode::interrupted;
  }

  // Tell them.
  int code = ExitCode::done;
  if (*shard) {
    if (stopped) {
      std::fputs("interrupted: a part of a shard is of no use; with -o FILE it can go on\n",
                 stderr);
      return ExitCode::interrupted;
    }
    code = write_output(to_json(part, kVersion), output);
  } else {
    SearchTally tally(part.facts);
    for (FamilyResult& result : part.families) tally.add(std::move(result));
    code = tell_search(std::move(tally), *std::move(selection), &*search, stopped, arguments);
  }
  if (partial && code != ExitCode::file_trouble) partial->remove();
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
  command->add_flag("--free", arguments->free,
                    "search the keys of the layout that the scenario gives, too, and say how it "
                    "compares");
  add_work_options(*command, *arguments);
  command->callback([arguments, command, &exit_code] {
    arguments->output = arguments->scenario.output;
    arguments->command_line = command_line(*command);
    // Ten rows of a table; a part is told whole.
    if (arguments->top == 0 && arguments->shard.empty()) arguments->top = 10;
    exit_code = search_all(*arguments);
  });
}

}  // namespace plumbline
