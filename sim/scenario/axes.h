// Keys of a scenario with several values each, and all their combinations.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/yaml.h"

namespace plumbline {

/// The most combinations of one command.
inline constexpr std::size_t kMaxCombinations = 10'000'000;

/// A key with the values that it takes in turn. Invariant: at least one value; `changes` is
/// parallel to `values`.
struct Axis {
  std::string key;                  ///< Dotted: schedule.micro_batches.
  std::vector<std::string> values;  ///< As they are written.
  std::vector<YamlOverride> changes;
};

/// A value as it may be written in one line.
std::string flow_text(const YamlNode& node);

/// The axes that `key=a,b,c` arguments give. `range(from, to, step)` stands for the whole numbers
/// from `from` up to, but not including, `to`; step is 1 where it is absent. Commas within
/// brackets, braces and quotes part no values. Errors: no '=', an empty value among several, a
/// range that holds nothing, a value that is not YAML, a key that stands twice.
Result<std::vector<Axis>> read_axes(const std::vector<std::string>& arguments);

/// The axes of a `sweep` section: a map from dotted keys to a list of values or the text of a
/// range. Adds all that is wrong to `problems`.
std::vector<Axis> read_axes(const YamlNode& section, Diagnostics& problems);

/// All combinations of `key=a,b,c` arguments as read_axes takes them, the last one varying fastest,
/// each as a list of `key=value` overrides; one empty list where there are no arguments. Errors: as
/// above, save that what is no override is left to its reader; too many combinations.
Result<std::vector<std::vector<std::string>>> combinations(
    const std::vector<std::string>& arguments);

/// Of each combination the overrides that are not the same in all of them. Requires: at least one.
std::vector<std::vector<std::string>> varying_overrides(
    const std::vector<std::vector<std::string>>& combinations);

}  // namespace plumbline
