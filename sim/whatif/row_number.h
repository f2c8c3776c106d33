// The numbers of a sweep's row by their names, for conditions and tables.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "sim/whatif/sweep_result.h"

namespace plumbline {

/// A number of a row.
struct RowNumber {
  /// What it counts, which decides how it is read and printed.
  enum class Unit { seconds, bytes, flops_per_second, per_second, fraction, count, truth };

  std::string_view name;   ///< As in JSON: "iteration_time_s".
  std::string_view title;  ///< For people: "iteration time".
  Unit unit = Unit::count;
  /// Nothing if the row does not have it. A truth is 1 or 0.
  std::optional<double> (*of)(const SweepNumbers&) = nullptr;
};

/// All of them.
std::span<const RowNumber> row_numbers();

/// The number of this name; null if there is none.
const RowNumber* find_row_number(std::string_view name);

}  // namespace plumbline
