// Threads, parts, signals and progress.
//
// SPDX-License-Identifier: MIT
#include "cli/work_options.h"

#include <fmt/format.h>

#include <CLI/App.hpp>

#include "base/parallel.h"
#include "base/quantity.h"
#include "cli/option_checks.h"
#include "sim/scenario/axes.h"

namespace plumbline {
namespace {

/// "2/8". Errors: no such text, an index out of range.
Result<Shard> parse_shard(const std::string& text) {
  const std::size_t slash = text.find('/');
  const std::string index = text.substr(0, slash);
  const auto i = parse_count(index);
  const auto n = parse_count(slash == std::string::npos ? "" : text.substr(slash + 1));
  if (!i.value || !n.value) {
    return input_error({},
                       fmt::format("--shard is '{}', which is not of the form i/n", clipped(text)),
                       "the second of eight shards: --shard 2/8");
  }
  if (*n.value < 1 || *n.value > static_cast<std::int64_t>(kMaxCombinations) || *i.value < 1 ||
      *i.value > *n.value) {
    return input_error({},
                       fmt::format("--shard is '{}', but there is no shard {} of {}", clipped(text),
                                   *i.value, *n.value),
                       "shards count from 1: 1/8, 2/8, ... 8/8");
  }
  return Shard{static_cast<std::uint64_t>(*i.value), static_cast<std::uint64_t>(*n.value)};
}

}  // namespace

void add_work_options(CLI::App& command, WorkArguments& arguments) {
  command.add_option("--jobs", arguments.threads, "threads; absent = one a core")
      ->check(between(1, 4096))
      ->type_name("N");
  command
      .add_option("--shard", arguments.shard,
                  "only the i-th of n parts, for plumbline merge; with --json")
      ->type_name("i/n");
  command.add_flag("--resume", arguments.resume,
                   "go on with the rows that an interrupted run kept in FILE.partial");
}

Result<std::optional<Shard>> read_shard(const WorkArguments& arguments, const SweepOptions& told,
                                        const std::string& output, const std::string& noun) {
  if (arguments.resume && output.empty())
    return input_error({}, "--resume without -o",
                       "only with -o FILE rows are kept, in FILE.partial");
  if (arguments.shard.empty()) return std::optional<Shard>();
  if (!told.report.empty()) {
    return input_error({}, "--report with --shard, which has only a part of the points",
                       "plumbline merge takes --report, when all shards are there");
  }
  if (told.selects() || told.csv || told.markdown || !told.json) {
    return input_error(
        {}, "--shard gives a part of the rows, as JSON and in full",
        fmt::format("{} with --json; --objective, --where, --pareto, --top, {}--csv and --markdown "
                    "go to plumbline merge",
                    noun, noun == "search" ? "--distinct, " : ""));
  }
  const auto shard = parse_shard(arguments.shard);
  if (!shard) return shard.problems();
  return std::optional<Shard>(*shard);
}

WatchedWork::WatchedWork(const WorkArguments& arguments, std::optional<Shard> shard,
                         const std::string& output, const std::string& noun,
                         const std::string& things)
    : progress_(noun, things) {
  options_.threads = arguments.threads;
  options_.shard = shard;
  if (!output.empty() && !holds_outputs()) options_.partial_path = output + ".partial";
  options_.resume = arguments.resume;
  options_.version = kVersion;
  options_.stop = &InterruptGuard::flag();
  options_.progress = [this](std::uint64_t done, std::uint64_t count) {
    progress_.tell(done, count);
  };
  keep_freed_memory();
}

}  // namespace plumbline
