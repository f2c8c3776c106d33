// The formats of numbers that a model is trained in.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace plumbline {

/// The format of parameters, activations and the inputs of matrix products.
enum class NumberFormat : std::uint8_t { fp32, bf16, fp16, fp8 };

/// Their names, in the order of the enumeration.
inline constexpr std::array<std::string_view, 4> kNumberFormats = {"fp32", "bf16", "fp16", "fp8"};

constexpr std::string_view name_of(NumberFormat format) {
  return kNumberFormats[static_cast<std::size_t>(format)];
}

/// The bytes of one number.
constexpr std::int64_t bytes_of(NumberFormat format) {
  constexpr std::array<std::int64_t, 4> bytes = {4, 2, 2, 1};
  return bytes[static_cast<std::size_t>(format)];
}

/// The format of this name. Requires: it is one of kNumberFormats.
constexpr NumberFormat number_format(std::string_view name) {
  std::size_t i = 0;
  while (i + 1 < kNumberFormats.size() && kNumberFormats[i] != name) ++i;
  return static_cast<NumberFormat>(i);
}

}  // namespace plumbline
