// The first few of many names, for a sentence.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace plumbline {

/// "a, b, c, d, e and 2 more", with `max` names; "" for no names.
std::string some_of(const std::vector<std::string>& names, std::size_t max = 5);

}  // namespace plumbline
