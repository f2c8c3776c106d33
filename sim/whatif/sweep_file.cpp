// Putting shards together.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/sweep_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace plumbline {
namespace {

/// The number of points of a shard.
std::uint64_t points_of(const SweepResult& result) {
  if (!result.shard) return result.points;
  std::uint64_t held = 0;
  for (std::uint64_t point = 0; point < result.points; ++point)
    held += result.shard->holds(point) ? 1 : 0;
  return held;
}

/// An error if rows belong to points outside the shard, or if rows are missing.
std::optional<Diagnostic> check_rows(SweepFile& file) {
  SweepResult& result = file.result;
  const auto by_point = [](const SweepRow& a, const SweepRow& b) { return a.point < b.point; };
  std::sort(result.rows.begin(), result.rows.end(), by_point);
  const auto twice =
      std::adjacent_find(result.rows.begin(), result.rows.end(),
                         [](const SweepRow& a, const SweepRow& b) { return a.point == b.point; });
  if (twice != result.rows.end())
    return input_error({file.source},
                       fmt::format("the row of point {} stands twice", twice->point));
  const std::uint64_t wanted = points_of(result);
  if (result.rows.size() == wanted &&
      (!result.shard ||
       std::all_of(result.rows.begin(), result.rows.end(),
                   [&](const SweepRow& row) { return result.shard->holds(row.point); })))
    return std::nullopt;
  return input_error({file.source},
                     fmt::format("holds {} of its {} rows", result.rows.size(), wanted),
                     "--where, --pareto, --top and an interruption leave rows out: sweep without "
                     "them, and give them to merge");
}

/// The shard's identity, to compare it with other shards.
ShardFile shard_file(const SweepFile& file) {
  std::string fingerprint = file.result.fingerprint;
  for (const SweepAxis& axis : file.result.axes)
    fingerprint += fmt::format("\n{}={}", axis.key, fmt::join(axis.values, ","));
  return {file.source, std::move(fingerprint), file.result.shard};
}

}  // namespace

Result<SweepResult> merge(std::vector<SweepFile> files) {
  std::vector<ShardFile> parts;
  parts.reserve(files.size());
  for (const SweepFile& file : files) parts.push_back(shard_file(file));
  if (Diagnostics refused = check_parts(parts, kSweepKind); !refused.empty()) return refused;
  SweepResult whole = files.front().result;
  whole.rows.clear();
  whole.rows.reserve(whole.points);
  for (SweepFile& file : files) {
    if (auto refused = check_rows(file)) return *refused;
    std::move(file.result.rows.begin(), file.result.rows.end(), std::back_inserter(whole.rows));
  }
  const auto by_point = [](const SweepRow& a, const SweepRow& b) { return a.point < b.point; };
  std::sort(whole.rows.begin(), whole.rows.end(), by_point);
  whole.shard.reset();
  return whole;
}

}  // namespace plumbline
