// Many points as a few numbers: the size of the errors, the worst one, and their causes.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "tools/result_file.h"

namespace plumbline {

/// The spread of one number over several points.
struct Spread {
  double mean_size = 0;  ///< The mean of the absolute values.
  double median_size = 0;
  double mean = 0;
  double min = 0;
  double max = 0;
};

/// The causes of an error, in the order of `Summary::causes`.
inline constexpr std::array<std::string_view, 6> kCauses = {"profile",   "compute", "transfer",
                                                            "hand-over", "waiting", "telling"};

/// All causes in the same order, in seconds.
inline std::array<double, kCauses.size()> by_cause(const ErrorShares& shares) {
  return {shares.profile_s,   shares.compute_s, shares.transfer_s,
          shares.hand_over_s, shares.waiting_s, shares.telling_s};
}

/// Points whose layers were timed again beside the runs.
struct TimedAgain {
  std::size_t runs = 0;
  Spread by_profile;                     ///< The error of these points, with the profile's times.
  Spread error;                          ///< The error with times measured beside the run.
  const ResultPoint* worst = nullptr;    ///< The first point with the largest of these errors.
  const ResultFile* worst_of = nullptr;  ///< The file of that point.
  Spread rounds;                         ///< The ranges of the rounds of one run.
};

struct Summary {
  std::size_t runs = 0;
  std::size_t measured = 0;  ///< Runs with a clean iteration; only they count in the errors.
  Spread error;              ///< All 0 where nothing was measured.
  const ResultPoint* worst = nullptr;    ///< The first point with the largest absolute error.
  const ResultFile* worst_of = nullptr;  ///< The file of that point.
  TimedAgain again;
  /// Relative to the measured time, as the error.
  std::array<Spread, kCauses.size()> causes{};
  std::array<std::size_t, 4> memory{};    ///< By MemoryVerdict.
  std::array<std::size_t, 4> verdicts{};  ///< By Verdict, of all runs.
  std::int64_t clean = 0;
  std::int64_t iterations = 0;
  /// The sum of the files' own rankings: only pairs within one file are compared.
  Ranking ranking;
};

/// The numbers of these files together. They must outlive the result.
Summary summarize(const std::vector<const ResultFile*>& files);

}  // namespace plumbline
