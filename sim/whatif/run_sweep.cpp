// Evaluates the points that have no row yet.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/run_sweep.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "sim/whatif/sweep_file.h"

namespace plumbline {
namespace {

/// The points of the shard that have no row yet.
std::vector<std::uint64_t> open_points(const SweepResult& result, const WorkOptions& options) {
  std::vector<bool> done(result.points, false);
  for (const SweepRow& row : result.rows) done[row.point] = true;
  std::vector<std::uint64_t> open;
  open.reserve(static_cast<std::size_t>(result.points / options.shard.value_or(Shard{}).count + 1));
  for (std::uint64_t point = 0; point < result.points; ++point) {
    if (!done[point] && options.holds(point)) open.push_back(point);
  }
  return open;
}

/// Opens the file that keeps the rows, and reads the rows that it has.
std::optional<Diagnostics> keep_rows(SweepRun& run, const WorkOptions& options) {
  const auto read = [&](const std::shared_ptr<const Source>& source) -> Result<std::size_t> {
    auto kept = parse_partial(source, run.result, options.version);
    if (!kept) return kept.problems();
    run.result.rows = std::move(kept->rows);
    return kept->kept_bytes;
  };
  return open_partial(options, kSweepKind, partial_header(run.result, options.version), read,
                      run.partial);
}

}  // namespace

Result<SweepRun> run_sweep(const Sweep& sweep, const WorkOptions& options) {
  SweepRun run;
  SweepResult& result = run.result;
  result = sweep.header();
  result.shard = options.shard;
  if (const auto refused = keep_rows(run, options)) return *refused;
  const std::size_t kept = result.rows.size();
  const std::vector<std::uint64_t> open = open_points(result, options);
  result.rows.reserve(kept + open.size());
  const auto failure = work_through(open.size(), options, run.partial, [&](std::uint64_t i) {
    auto row = std::make_shared<SweepRow>(sweep.evaluate(open[i]));
    std::string line = run.partial ? row_json(result, *row) : "";
    return Finished{std::move(line), [&, row] {
                      result.rows.push_back(std::move(*row));
                      if (options.progress)
                        options.progress(result.rows.size() - kept, open.size());
                    }};
  });
  if (failure) return *failure;
  run.stopped = result.rows.size() < kept + open.size();
  std::sort(result.rows.begin(), result.rows.end(),
            [](const SweepRow& a, const SweepRow& b) { return a.point < b.point; });
  return run;
}

}  // namespace plumbline
