// Overrides with several values each, and all their combinations.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "models/diagnostic.h"

namespace plumbline {

/// The most combinations of one command.
inline constexpr std::size_t kMostCombinations = 10'000'000;

/// All combinations of `key=a,b,c` arguments, the last one varying fastest, each as a list of
/// `key=value` overrides; one empty list where there are no arguments. `range(from, to, step)`
/// stands for the whole numbers from `from` up to, but not including, `to`; step is 1 where it is
/// absent. Commas within brackets, braces and quotes part no values. Errors: an empty value, a
/// range that holds nothing, a key that stands twice, too many combinations.
Result<std::vector<std::vector<std::string>>> combinations(
    const std::vector<std::string>& arguments);

/// Of each combination the overrides that are not the same in all of them. Requires: at least one.
std::vector<std::vector<std::string>> varying_overrides(
    const std::vector<std::vector<std::string>>& combinations);

}  // namespace plumbline
