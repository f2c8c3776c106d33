// Putting shards together.
// SPDX-License-Identifier: MIT
#include "sim/sweep_file.h"

#include <fmt/format.h>

#include <algorithm>

namespace plumbline {
namespace {

/// How many points a shard holds.
std::uint64_t points_of(const SweepResult& result) {
  if (!result.shard) return result.points;
  std::uint64_t held = 0;
  for (std::uint64_t point = 0; point < result.points; ++point)
    held += result.shard->holds(point) ? 1 : 0;
  return held;
}

/// Errors: rows of points that are not the shard's, or some of them missing.
std::optional<Diagnostic> refuse_rows(SweepFile& file) {
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

/// Errors: files that are not of one sweep in equally many parts.
std::optional<Diagnostic> refuse_strangers(const std::vector<SweepFile>& files) {
  const SweepFile& first = files.front();
  for (const SweepFile& file : files) {
    const SweepResult& result = file.result;
    if (result.fingerprint != first.result.fingerprint || result.axes != first.result.axes) {
      return input_error({file.source},
                         fmt::format("is of another sweep than {}", first.source->name),
                         "the scenario, a file that it names, or an axis differs");
    }
    if (!result.shard && files.size() > 1) {
      return input_error({file.source}, "is a whole sweep, and no shard",
                         "it needs nothing beside it");
    }
    if (result.shard && result.shard->count != first.result.shard->count) {
      return input_error({file.source},
                         fmt::format("is of {} shards, and {} of {}", result.shard->count,
                                     first.source->name, first.result.shard->count));
    }
  }
  return std::nullopt;
}

/// Errors: shards that are there twice, or not at all.
Diagnostics refuse_gaps(const std::vector<SweepFile>& files) {
  Diagnostics problems;
  std::vector<const SweepFile*> of_shard(files.front().result.shard->count, nullptr);
  for (const SweepFile& file : files) {
    const Shard& shard = *file.result.shard;
    const SweepFile*& place = of_shard[shard.index - 1];
    if (place) {
      problems.push_back(input_error(
          {file.source},
          fmt::format("is shard {} of {}, as {} is", shard.index, shard.count, place->source->name),
          "give each shard once"));
    }
    place = &file;
  }
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < of_shard.size(); ++i) {
    if (!of_shard[i]) missing.push_back(std::to_string(i + 1));
  }
  if (!missing.empty()) {
    std::string list = missing.front();
    for (std::size_t i = 1; i < std::min<std::size_t>(missing.size(), 10); ++i)
      list += ", " + missing[i];
    if (missing.size() > 10) list += fmt::format(" and {} more", missing.size() - 10);
    Diagnostic wrong;
    wrong.message = fmt::format("of {} shards {} {} missing", of_shard.size(), list,
                                missing.size() == 1 ? "is" : "are");
    wrong.help = "plumbline sweep ... --shard i/n --json -o FILE writes one";
    problems.push_back(std::move(wrong));
  }
  return problems;
}

}  // namespace

Result<SweepResult> merge(std::vector<SweepFile> files) {
  if (auto refused = refuse_strangers(files)) return *refused;
  SweepResult whole = files.front().result;
  if (whole.shard) {
    Diagnostics gaps = refuse_gaps(files);
    if (!gaps.empty()) return gaps;
  }
  whole.rows.clear();
  whole.rows.reserve(whole.points);
  for (SweepFile& file : files) {
    if (auto refused = refuse_rows(file)) return *refused;
    std::move(file.result.rows.begin(), file.result.rows.end(), std::back_inserter(whole.rows));
  }
  const auto by_point = [](const SweepRow& a, const SweepRow& b) { return a.point < b.point; };
  std::sort(whole.rows.begin(), whole.rows.end(), by_point);
  whole.shard.reset();
  return whole;
}

}  // namespace plumbline
