// The kept part of `plumbline validate --json`: one command's points, and where they were measured.
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

class SectionReader;

/// The group that a result belongs to. The page has a section for each, in this order.
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
/// Whether its runs train networks. The page then describes their calibration.
constexpr bool trains(ResultGroup group) {
  return group >= ResultGroup::networks && group != ResultGroup::gpu_spins;
}
/// Whether scripts/validate-gpu makes it, on a GPU.
constexpr bool is_of_gpu(ResultGroup group) { return group >= ResultGroup::gpu_spins; }
/// Whether a file holds several scenarios, so that points are named by theirs.
constexpr bool has_scenarios(ResultGroup group) {
  return group == ResultGroup::examples || (group >= ResultGroup::copies && !is_of_gpu(group));
}
/// The group with this name; nothing if there is none.
std::optional<ResultGroup> group_named(std::string_view name);

/// One run beside its prediction.
struct ResultPoint {
  /// The values that need a clean iteration.
  struct Measured {
    double time_s = 0;  ///< Per iteration, as predicted_s.
    double error = 0;   ///< predicted / measured - 1; negative = predicted too fast.
    ErrorShares shares;
    MemoryVerdict memory = MemoryVerdict::exact;
    /// The error with the layers' times measured beside the run; nothing where these were not
    /// measured.
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

/// The facts of a result besides its points.
struct ResultHeader {
  ResultGroup group = ResultGroup::practicals;
  std::string name;       ///< Within its group: "4 devices", "gpt-small".
  std::string command;    ///< The command line, with FOLDER for the folder of the results.
  bool is_short = false;  ///< A short run that only shows that everything works.
  std::map<std::string, std::string> machine;      ///< processor, cores, commit, date, ...
  std::map<std::string, std::string> calibration;  ///< noise, drift, ...; empty = nothing measured.
};

/// One command's results. Invariants: at least one point; a point is measured if and only if one
/// of its iterations was clean.
struct ResultFile : ResultHeader {
  Ranking ranking;  ///< The ranking of the pairs of its points.
  std::vector<ResultPoint> points;
};

/// A number of either sign. Adds an error if the key is absent or is no number.
double signed_number(SectionReader& section, std::string_view key, Diagnostics& problems);

/// Reads the output of `plumbline validate --json`. Errors: no such file; not of that form.
Result<ResultFile> read_validation(const std::string& path, ResultHeader header);

/// Reads the output of to_json. Errors: as read_validation.
Result<ResultFile> read_result(const std::string& path);

/// All `*.json` of a folder, in the order of their names. Errors: as read_result; no such folder;
/// no such file in it.
Result<std::vector<ResultFile>> read_results(const std::string& folder);

/// The keys of `validate --json` that the page needs, one line per point, under the header. Times
/// are kept to the nanosecond, errors to a ten-thousandth of a per cent.
std::string to_json(const ResultFile& result);

}  // namespace plumbline
