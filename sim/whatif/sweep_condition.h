// What a row of a sweep must meet to be told.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/whatif/sweep_result.h"

namespace plumbline {

/// A bound on one of a row's numbers, or on its value of an axis.
struct Condition {
  std::string text;  ///< As written.
  std::function<bool(const SweepRow&)> holds;
};

/// A condition as it is written: its parts, and where they stand.
struct ConditionText {
  std::string text;
  std::string key;
  std::string operation;
  std::string value;
};

/// Errors: no operator, or none that is known.
Result<ConditionText> split_condition(const std::string& text);

/// Whether a value can be compared by <, <=, >, >=: a number, size, time or rate.
bool is_comparable(const std::string& value);

/// Whether a text that is found for the key meets the condition: as numbers, sizes, times or rates
/// where both are such, else as words, which are equal or not. Requires: == or !=, or a comparable
/// value.
bool meets(const ConditionText& condition, const std::string& found);

/// "peak_memory_bytes < 80 GB": a number's name as JSON has it, or an axis's key; one of < <= > >=
/// == !=; a quantity with its unit, or a bare number in the unit of the name; of `fits` yes or no.
/// A number that does not exist meets nothing. Values of an axis that are no quantity of that kind
/// are equal where their texts are, and neither below nor above. Errors: no operator, an unknown
/// name, a value that is no such quantity, or none where one is wanted; one that no value of the
/// axis can be compared with, or for == and != none of them.
Result<Condition> parse_condition(const std::string& text, const std::vector<SweepAxis>& axes);

}  // namespace plumbline
