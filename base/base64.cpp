// Group by group, six bits a character.
//
// SPDX-License-Identifier: MIT
#include "base/base64.h"

#include <cstddef>
#include <cstdint>

namespace plumbline {

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      group <<= 8;
      if (i + j < bytes.size()) group |= static_cast<unsigned char>(bytes[i + j]);
    }
    for (std::size_t j = 0; j < 4; ++j)
      text += i + j <= bytes.size() ? digits[(group >> (18 - 6 * j)) & 63] : '=';
  }
  return text;
}

}  // namespace plumbline
