// What is kept of `plumbline validate --json`: one command's points, and where they were measured.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "calibrate/runtime/validation.h"

namespace plumbline {

/// What a result belongs to; the page has a section for each, in this order.
enum class ResultGroup : std::uint8_t {
  practicals,
  matrix,
  examples,
  networks,
  schedules,
  copies,
  links,
  recomputation,
  gpu_spins,
  gpu_networks
};

inline constexpr ResultGroup kResultGroups[] = {ResultGroup::practicals, ResultGroup::matrix,
                                                ResultGroup::examples,   ResultGroup::networks,
                                                ResultGroup::schedules,  ResultGroup::copies,
                                                ResultGroup::links,      ResultGroup::recomputation,
                                                ResultGroup::gpu_spins,  ResultGroup::gpu_networks};

/// "practicals", "matrix", ...
std::string_view name(ResultGroup group);
/// Whether its runs train networks, of whose calibration the page tells.
constexpr bool trains(ResultGroup group) {
  return group >= ResultGroup::networks && group != ResultGroup::gpu_spins;
}
/// Whether it is made by scripts/validate-gpu, of a GPU.
constexpr bool is_of_gpu(ResultGroup group) { return group >= ResultGroup::gpu_spins; }
/// Whether a file holds several scenarios, so that points go by theirs.
constexpr bool has_scenarios(ResultGroup group) {
  return group == ResultGroup::examples || (group >= ResultGroup::copies && !is_of_gpu(group));
}
/// Nothing where no group is called so.
std::optional<ResultGroup> group_named(std::string_view name);

/// One run beside its prediction.
struct ResultPoint {
  /// What only a clean iteration can tell.
  struct Measured {
    double time_s = 0;  ///< Of an iteration, as predicted_s.
    double error = 0;   ///< predicted / measured - 1; negative = predicted too fast.
    ErrorShares shares;
    MemoryVerdict memory = MemoryVerdict::exact;
    /// The error by the layers' times at the time of the run; nothing where these were not taken.
    std::optional<double> again_error;
    std::vector<double> rounds_s;  ///< The time of each round.

    /// The distance of the fastest and the slowest round, relative to time_s.
    double range_of_rounds() const;
  };
  std::string scenario;
  std::string schedule;
  std::int64_t devices = 1;
  std::int64_t micro_batches = 1;
  double predicted_s = 0;
  std::optional<Measured> measured;  ///< Nothing where no iteration was clean.
  Verdict verdict = Verdict::inconclusive;
  std::int64_t clean = 0;
  std::int64_t iterations = 0;
};

/// What the results know besides their points.
struct ResultHeader {
  ResultGroup group = ResultGroup::practicals;
  std::string name;       ///< Within its group: "4 devices", "gpt-small".
  std::string command;    ///< What was typed, with FOLDER for the folder of the results.
  bool is_short = false;  ///< Of a run that only shows that all works.
  std::map<std::string, std::string> machine;      ///< processor, cores, commit, date, ...
  std::map<std::string, std::string> calibration;  ///< noise, drift, ...; empty = nothing measured.
};

/// One command's results. Invariants: at least one point; a point is measured if and only if one
/// of its iterations was clean.
struct ResultFile : ResultHeader {
  Ranking ranking;  ///< Of the pairs of its points.
  std::vector<ResultPoint> points;
};

/// Reads what `plumbline validate --json` wrote. Errors: no such file; not of that form.
Result<ResultFile> read_validation(const std::string& path, ResultHeader header);

/// Reads what to_json wrote. Errors: as read_validation.
Result<ResultFile> read_result(const std::string& path);

/// All `*.json` of a folder, in the order of their names. Errors: as read_result; no such folder;
/// no such file in it.
Result<std::vector<ResultFile>> read_results(const std::string& folder);

/// The keys of `validate --json` that the page needs, a point a line, under the header. Times are
/// kept to the nanosecond, errors to a ten-thousandth of a per cent.
std::string to_json(const ResultFile& result);

}  // namespace plumbline
