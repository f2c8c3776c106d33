// Elements of tensors, as the made-up libraries read and write them.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace plumbline::rehearsal {

/// Whether kernels compute something, which costs the host a lot: PLUMBLINE_REHEARSAL_COMPUTES is
/// set. Else they only take their time.
inline bool computes() {
  static const bool is_set = std::getenv("PLUMBLINE_REHEARSAL_COMPUTES") != nullptr;
  return is_set;
}

/// The element at that place; `half`: of bf16, else of fp32.
inline float load(const unsigned char* data, std::size_t place, bool half) {
  if (!half) {
    float value = 0;
    std::memcpy(&value, data + place * sizeof value, sizeof value);
    return value;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, data + place * sizeof bits, sizeof bits);
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// Rounds to nearest, ties to even.
inline void store(unsigned char* data, std::size_t place, bool half, float value) {
  if (!half) {
    std::memcpy(data + place * sizeof value, &value, sizeof value);
    return;
  }
  const auto all = std::bit_cast<std::uint32_t>(value);
  const auto bits = static_cast<std::uint16_t>((all + 0x7FFF + ((all >> 16) & 1)) >> 16);
  std::memcpy(data + place * sizeof bits, &bits, sizeof bits);
}

}  // namespace plumbline::rehearsal
