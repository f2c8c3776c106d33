// `plumbline merge`: the shards of a sweep as the whole.
// SPDX-License-Identifier: MIT
#include <CLI/App.hpp>
#include <memory>

#include "cli/command.h"
#include "cli/sweep_options.h"
#include "sim/sweep_file.h"

namespace plumbline {
namespace {

struct MergeArguments : SweepOptions {
  std::vector<std::string> files;
  std::string output;
  std::string command_line;
};

int merge_files(const MergeArguments& arguments) {
  if (const int code = try_output(arguments.report); code != ExitCode::done) return code;
  Diagnostics problems;
  std::vector<SweepFile> files;
  files.reserve(arguments.files.size());
  for (const std::string& path : arguments.files) {
    const auto source = read_file(path, kLargestSweepFile);
    if (!keep(source, problems)) continue;
    auto file = parse_sweep_file(*source, kVersion);
    if (keep(file, problems)) files.push_back(*std::move(file));
  }
  if (!problems.empty()) return fail(problems);
  auto whole = merge(std::move(files));
  if (!whole) return fail(whole.problems());
  auto selection = read_selection(arguments, whole->axes);
  if (!selection) return fail(selection.problems());
  const SweepReport told = report(*std::move(whole), *std::move(selection));
  int written = write_page(told, arguments, arguments.command_line);
  if (written != ExitCode::done) return written;
  written = write_output(to_text(told, arguments), arguments.output);
  return written == ExitCode::done ? report_feasibility(told) : written;
}

}  // namespace

void add_merge(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<MergeArguments>();
  CLI::App* command =
      app.add_subcommand("merge", "put the shards of a sweep together, as if it had been one run");
  command->add_option("files", arguments->files, "results of sweep --shard i/n")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("-o,--output", arguments->output,
                   "write to this file instead of stdout, whole or not at all")
      ->type_name("FILE");
  add_sweep_options(*command, *arguments);
  command->callback([arguments, command, &exit_code] {
    arguments->command_line = command_line(*command);
    exit_code = merge_files(*arguments);
  });
}

}  // namespace plumbline
