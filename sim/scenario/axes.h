// Keys of a scenario with several values each, and all their combinations.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/yaml.h"

namespace plumbline {

/// The largest number of combinations in one command.
inline constexpr std::size_t kMaxCombinations = 10'000'000;

/// A key with the values that it takes in turn. Invariant: at least one value; `changes` is
/// parallel to `values`.
struct Axis {
  std::string key;                  ///< Dotted: schedule.micro_batches.
  std::vector<std::string> values;  ///< The values as written.
  std::vector<YamlOverride> changes;
};

/// The text of a value in one line, in YAML's flow style.
std::string flow_text(const YamlNode& node);

/// The axes of `key=a,b,c` arguments. `range(from, to, step)` stands for the whole numbers from
/// `from` up to, but not including, `to`; step is 1 if absent. Commas within brackets, braces and
/// quotes do not separate values. Errors: no '=', an empty value among several, an empty range, a
/// value that is not YAML, a key that stands twice.
Result<std::vector<Axis>> read_axes(const std::vector<std::string>& arguments);

/// The axes of a `sweep` section: a map from dotted keys to a list of values or the text of a
/// range. Adds all errors to `problems`.
std::vector<Axis> read_axes(const YamlNode& section, Diagnostics& problems);

/// All combinations of `key=a,b,c` arguments, as read_axes takes them; the last key varies fastest.
/// Each combination is a list of `key=value` overrides. Without arguments there is one empty list.
/// Errors: as above, except for texts that are no override, which their reader reports; too many
/// combinations.
Result<std::vector<std::vector<std::string>>> combinations(
    const std::vector<std::string>& arguments);

/// The overrides of each combination that are not the same in all combinations. Requires: at least
/// one.
std::vector<std::vector<std::string>> varying_overrides(
    const std::vector<std::vector<std::string>>& combinations);

}  // namespace plumbline
