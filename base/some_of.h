// The first few of many names, for a sentence.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

namespace plumbline {

/// "a, b, c, d, e and 2 more"; "" of none.
std::string some_of(const std::vector<std::string>& names);

}  // namespace plumbline
