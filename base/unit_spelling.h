// Units in spellings that are not in our list.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline {

/// The units that the writer of `written` may have meant: "Gbps" is Gbit/s, "TFLOPS" is TFLOP/s,
/// "msec" is ms. Several where bits and bytes cannot be told apart; none where nothing is near.
std::vector<std::string_view> meant_units(std::string_view written,
                                          std::span<const std::string_view> units);

}  // namespace plumbline
