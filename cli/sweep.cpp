// `plumbline sweep`: every combination of several values, on all cores.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/partial_file.h"
#include "cli/progress.h"
#include "cli/sweep_options.h"
#include "models/quantity.h"
#include "sim/parallel.h"
#include "sim/sweep_file.h"

namespace plumbline {
namespace {

struct SweepArguments : ScenarioArguments, SweepOptions {
  unsigned jobs = 0;
  std::string shard;
  bool resume = false;
  std::string command_line;
};

Diagnostic usage(std::string message, std::string help) {
  Diagnostic wrong;
  wrong.message = std::move(message);
  wrong.help = std::move(help);
  return wrong;
}

/// "2/8". Errors: no such text, an index out of range.
Result<Shard> parse_shard(const std::string& text) {
  const std::size_t slash = text.find('/');
  const std::string index = text.substr(0, slash);
  const auto i = parse_count(index);
  const auto n = parse_count(slash == std::string::npos ? "" : text.substr(slash + 1));
  if (!i.value || !n.value) {
    return usage(fmt::format("--shard is '{}', which is not of the form i/n", clipped(text)),
                 "the second of eight shards: --shard 2/8");
  }
  if (*n.value < 1 || *n.value > static_cast<std::int64_t>(kMostCombinations) || *i.value < 1 ||
      *i.value > *n.value) {
    return usage(fmt::format("--shard is '{}', but there is no shard {} of {}", clipped(text),
                             *i.value, *n.value),
                 "shards count from 1: 1/8, 2/8, ... 8/8");
  }
  return Shard{static_cast<std::uint64_t>(*i.value), static_cast<std::uint64_t>(*n.value)};
}

/// Errors: options that do not go together.
std::optional<Diagnostic> refuse_options(const SweepArguments& arguments) {
  if (arguments.resume && arguments.output.empty()) {
    return usage("--resume without -o", "only with -o FILE rows are kept, in FILE.partial");
  }
  if (arguments.shard.empty()) return std::nullopt;
  if (!arguments.report.empty()) {
    return usage("--report with --shard, which has only a part of the points",
                 "plumbline merge takes --report, when all shards are there");
  }
  if (arguments.selects() || arguments.csv || arguments.markdown || !arguments.json) {
    return usage(
        "--shard gives a part of the rows, as JSON and in full",
        "sweep with --json; --objective, --where, --pareto, --top, --csv and --markdown go "
        "to plumbline merge");
  }
  return std::nullopt;
}

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
  std::mutex mutex;
  std::optional<Diagnostic> failure;
  std::uint64_t done = 0;
  CountedProgress progress("sweep", "points", open.size());
  const InterruptGuard guard;
  keep_freed_memory();
  for_each_parallel(open.size(), jobs, InterruptGuard::flag(), [&](std::uint64_t i) {
    SweepRow row = sweep.evaluate(open[i]);
    const std::string line = partial ? row_json(result, row) : "";
    const std::lock_guard lock(mutex);
    if (failure) return;
    if (partial && !partial->append(line)) {
      failure =
          usage(fmt::format("{} cannot be written: {}", partial->path(), std::strerror(errno)),
                "the rows in it are whole: go on with --resume");
      failure->fault = Fault::file;
      InterruptGuard::flag() = true;
      return;
    }
    result.rows.push_back(std::move(row));
    progress.tell(++done);
  });
  return failure;
}

int sweep_all(const SweepArguments& arguments) {
  if (const auto wrong = refuse_options(arguments)) return fail({*wrong});
  std::optional<Shard> shard;
  if (!arguments.shard.empty()) {
    const auto read = parse_shard(arguments.shard);
    if (!read) return fail(read.problems());
    shard = *read;
  }

  if (const int code = try_output(arguments.report); code != ExitCode::done) return code;

  // Which points there are, and which of them have a row already.
  const auto sweep = Sweep::open(arguments.scenario, arguments.overrides);
  if (!sweep) return fail(sweep.problems());
  auto selection = read_selection(arguments, sweep->header().axes);
  if (!selection) return fail(selection.problems());
  SweepResult result = sweep->header();
  result.shard = shard;
  std::optional<PartialFile> partial;
  if (!arguments.output.empty()) {
    if (const int trouble = try_output(arguments.output); trouble != ExitCode::done) return trouble;
    auto opened = PartialFile::open(arguments.output + ".partial", result, arguments.resume);
    if (!opened) return fail(opened.problems());
    partial.emplace(*std::move(opened));
    result.rows = partial->take_rows();
  }

  // Evaluate them.
  const unsigned jobs = arguments.jobs > 0 ? arguments.jobs : available_cores();
  const auto failure = evaluate_all(*sweep, jobs, result, partial ? &*partial : nullptr);
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
  return shard ? ExitCode::done : report_feasibility(told);
}

}  // namespace

void add_sweep(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<SweepArguments>();
  CLI::App* command =
      app.add_subcommand("sweep", "predict every combination: key=1,2,4 key='range(4, 65, 4)'");
  add_scenario_arguments(*command, *arguments);
  add_sweep_options(*command, *arguments);
  command->add_option("--jobs", arguments->jobs, "threads; absent = one a core")
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
  command
      ->add_option("--shard", arguments->shard,
                   "only the i-th of n parts, for plumbline merge; with --json")
      ->type_name("i/n");
  command->add_flag("--resume", arguments->resume,
                    "go on with the rows that an interrupted sweep kept in FILE.partial");
  command->callback([arguments, command, &exit_code] {
    arguments->command_line = command_line(*command);
    exit_code = sweep_all(*arguments);
  });
}

}  // namespace plumbline
