// The conditions that a row of a sweep must meet to be reported.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.h"
#include "sim/whatif/row_number.h"
#include "sim/whatif/sweep_result.h"

namespace plumbline {

/// A bound on one of a row's numbers, or on its value of an axis.
struct Condition {
  std::string text;  ///< The text as written.
  std::function<bool(const SweepRow&)> holds;
  std::string number = "";  ///< The name of the number that it bounds; "" = the value of an axis.
};

/// A condition as written, with its parts.
struct ConditionText {
  std::string text;
  std::string key;
  std::string operation;
  std::string value;
};

/// Splits a condition into its parts. Errors: no operator, or an unknown one.
Result<ConditionText> split_condition(const std::string& text);

/// Whether `a operation b` holds, for one of < <= > >= == !=.
bool compare(std::string_view operation, double a, double b);

/// The value of a condition in the unit of `number`: a quantity with its unit, or a plain number;
/// for a truth yes or no. Errors: a value of another kind.
Parsed<double> parse_bound(const RowNumber& number, const std::string& value);

/// Whether a value can be compared by <, <=, >, >=: a number, size, time or rate.
bool is_comparable(const std::string& value);

/// Whether a text found for the key meets the condition. Numbers, sizes, times or rates are
/// compared as such, if both texts are of that kind. Other texts are words, which are equal or not.
/// Requires: == or !=, or a comparable value.
bool meets(const ConditionText& condition, const std::string& found);

/// Reads a condition such as "peak_memory_bytes < 80 GB". It has the name of a number as in JSON,
/// or the key of an axis; one of < <= > >= == !=; and a quantity with its unit, or a plain number
/// in the unit of the name (for `fits`, yes or no). A number that does not exist meets no
/// condition. Axis values that are no quantity of that kind are equal if their texts are equal, and
/// are neither below nor above. Errors: no operator; an unknown name; a missing value, or a value
/// of the wrong kind; for an axis, a value that is comparable with none of its values, or, for ==
/// and !=, equal to none of them.
Result<Condition> parse_condition(const std::string& text, const std::vector<SweepAxis>& axes);

}  // namespace plumbline
