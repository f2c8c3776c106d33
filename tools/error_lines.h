// The error of a network in two parts: what grows with the micro-batches, and what does not.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "tools/result_file.h"

namespace plumbline {

/// How far off the runs of one schedule are, as a straight line over the number of micro-batches,
/// through the runs with the fewest and with the most of them. Negative = predicted too fast.
struct ErrorLine {
  std::string schedule;
  double slope_s = 0;  ///< For each micro-batch more.
  double fixed_s = 0;  ///< With no micro-batch.
  double slope = 0;    ///< slope_s / the measured time of a micro-batch more.

  /// Whether the two parts have opposite signs and each is 0.5 % of the smaller run or more: an
  /// error of one run is then smaller than its parts are.
  bool cancels = false;
};

/// The line of each schedule that was measured with several numbers of micro-batches.
std::vector<ErrorLine> error_lines(const ResultFile& file);

/// A table with a row for each file that has lines; "" where none has. `noun` is the title of the
/// first column.
std::string error_line_table(const std::vector<const ResultFile*>& files, const std::string& noun);

}  // namespace plumbline
