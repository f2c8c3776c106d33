// `plumbline merge`: the shards of a sweep, or of a search, as the whole.
//
// SPDX-License-Identifier: MIT
#include <CLI/App.hpp>
#include <algorithm>
#include <memory>

#include "cli/command.h"
#include "cli/search_output.h"
#include "cli/sweep_options.h"
#include "sim/search/search.h"
#include "sim/search/search_file.h"
#include "sim/whatif/cost_figures.h"
#include "sim/whatif/sweep_file.h"

namespace plumbline {
namespace {

struct MergeArguments : SearchOptions {
  std::vector<std::string> files;
  std::string table;
};

int merge_searches(const MergeArguments& arguments,
                   const std::vector<std::shared_ptr<const Source>>& sources) {
  if (!arguments.table.empty())
    return fail({input_error({}, "--table with a search, whose layouts are no grid of two keys",
                             "it goes to the parts of a sweep")});
  Diagnostics problems;
  std::vector<SearchPart> parts;
  for (const auto& source : sources) {
    auto part = parse_search_part(source, kVersion);
    if (keep(part, problems)) parts.push_back(*std::move(part));
  }
  if (!problems.empty()) return fail(problems);
  auto whole = merge(std::move(parts));
  if (!whole) return fail(whole.problems());
  MergeArguments told = arguments;
  if (told.top == 0) told.top = 10;  // as `search` does
  auto selection = read_selection(told, whole->facts);
  if (!selection) return fail(selection.problems());
  const auto search = open_again(whole->facts);
  return tell_search(*std::move(whole), *std::move(selection), search ? &*search : nullptr, false,
                     told);
}

int merge_sweeps(const MergeArguments& arguments,
                 const std::vector<std::shared_ptr<const Source>>& sources) {
  if (arguments.distinct)
    return fail({input_error({}, "--distinct with a sweep, whose points are no layouts",
                             "it goes to the parts of a search")});
  Diagnostics problems;
  std::vector<SweepFile> files;
  files.reserve(sources.size());
  for (const auto& source : sources) {
    auto file = parse_sweep_file(source, kVersion);
    if (keep(file, problems)) files.push_back(*std::move(file));
  }
  if (!problems.empty()) return fail(problems);
  auto whole = merge(std::move(files));
  if (!whole) return fail(whole.problems());
  auto selection = read_selection(arguments, whole->axes);
  if (!selection) return fail(selection.problems());
  const auto pivot = read_pivot(arguments.table, whole->axes);
  if (!pivot) return fail(pivot.problems());
  if (const auto wrong = check_figures(*selection, whole->rows)) return fail({*wrong});
  const SweepReport told = report(*std::move(whole), *std::move(selection));
  int written = write_page(told, arguments, arguments.command_line);
  if (written != ExitCode::done) return written;
  written =
      write_output(to_text(told, arguments, *pivot, page_width(arguments.page, arguments.output)),
                   arguments.output);
  return written == ExitCode::done ? report_feasibility(told) : written;
}

int merge_files(const MergeArguments& arguments) {
  if (const int code = try_output(arguments.report); code != ExitCode::done) return code;
  Diagnostics problems;
  std::vector<std::shared_ptr<const Source>> sources;
  for (const std::string& path : arguments.files) {
    const auto source = read_file(path, kLargestSweepFile);
    if (keep(source, problems)) sources.push_back(*source);
  }
  if (!problems.empty()) return fail(problems);
  const bool of_search = std::any_of(sources.begin(), sources.end(),
                                     [](const auto& source) { return is_search_part(*source); });
  return of_search ? merge_searches(arguments, sources) : merge_sweeps(arguments, sources);
}

}  // namespace

void add_merge(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<MergeArguments>();
  CLI::App* command = app.add_subcommand(
      "merge", "put the shards of a sweep or a search together, as if it had been one run");
  command
      ->add_option("files", arguments->files,
                   "results of sweep --shard i/n, or of search --shard i/n")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("-o,--output", arguments->output,
                   "write to this file instead of stdout, whole or not at all")
      ->type_name("FILE");
  add_page_arguments(*command, arguments->page);
  add_sweep_options(*command, *arguments);
  add_table_option(*command, arguments->table);
  add_distinct_option(*command, arguments->distinct);
  command->callback([arguments, command, &exit_code] {
    arguments->command_line = command_line(*command);
    exit_code = merge_files(*arguments);
  });
}

}  // namespace plumbline
