// Units as people write them who have not read our list.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline {

/// Which of `units` somebody may have meant who wrote `written`: "Gbps" is Gbit/s, "TFLOPS" is
/// TFLOP/s, "msec" is ms. Two where it cannot be told bits from bytes; none where nothing is near.
std::vector<std::string_view> meant_units(std::string_view written,
                                          std::span<const std::string_view> units);

}  // namespace plumbline
