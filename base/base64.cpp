// Group by group, six bits a character.
//
// SPDX-License-Identifier: MIT
#include "base/base64.h"

#include <cstddef>
#include <cstdint>

namespace plumbline {
namespace {

constexpr std::string_view kUrlDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

}  // namespace

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

std::string base64_url(std::string_view bytes) {
  std::string text = base64(bytes);
  while (text.ends_with('=')) text.pop_back();
  for (char& digit : text) {
    if (digit == '+') digit = '-';
    if (digit == '/') digit = '_';
  }
  return text;
}

std::optional<std::string> from_base64_url(std::string_view text) {
  std::string bytes;
  std::uint32_t group = 0;
  std::uint32_t bits = 0;
  for (const char digit : text) {
    const std::size_t value = kUrlDigits.find(digit);
    if (value == kUrlDigits.npos) return std::nullopt;
    group = (group << 6 | static_cast<std::uint32_t>(value)) & 0xffff;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(group >> bits & 0xff);
  }
  if (base64_url(bytes) != text) return std::nullopt;  // bits behind the last byte, or a lone digit
  return bytes;
}

}  // namespace plumbline
