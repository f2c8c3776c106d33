// Texts, keys and flow collections that every reader of YAML accepts.
//
// SPDX-License-Identifier: MIT
#include "base/yaml_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <utility>

#include "base/diagnostic.h"
#include "base/section_reader.h"

namespace plumbline {
namespace {

constexpr std::size_t kWidth = 120;  // columns of a line that may be broken
/// YAML 1.2, section 7.4.2: a key in one line has at most 1024 characters.
constexpr std::size_t kLongestPlainKey = 1'000;

constexpr std::string_view kReplacement = "\uFFFD";  // in place of a byte that is not UTF-8

/// The character that starts `text`. Requires: valid UTF-8.
std::uint32_t code_point(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  std::uint32_t code = byte(0);
  if (text.size() > 1) code &= 0xFFU >> (text.size() + 1);
  for (std::size_t i = 1; i < text.size(); ++i) code = code << 6U | (byte(i) & 0x3FU);
  return code;
}

/// Whether YAML 1.2, section 5.1, calls the character not printable, or YAML 1.1 takes it for the
/// end of a line.
bool needs_escape(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x2028 || code == 0x2029 ||
         code == 0xFEFF || code == 0xFFFE || code == 0xFFFF;
}

/// Whether the opening brackets in `text` close again: our reader counts brackets in quotes, too.
bool brackets_close(std::string_view text) {
  constexpr int max = 8;
  int open = 0;
  for (const char c : text) {
    if (c == '[' || c == '{') ++open;
    if (c == ']' || c == '}') --open;
    if (open < 0 || open > max) return false;
  }
  return open == 0;
}

std::string quoted(std::string_view text) {
  const bool keeps_brackets = brackets_close(text);
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0) {
      out += kReplacement;
      ++at;
      continue;
    }
    const std::string_view character = text.substr(at, length);
    const std::uint32_t code = code_point(character);
    const bool is_open_bracket = code == '[' || code == '{';
    if (code == '"' || code == '\\') {
      out += '\\';
      out += character;
    } else if (code == '\n') {
      out += "\\n";
    } else if (code == '\t') {
      out += "\\t";
    } else if (needs_escape(code) || (is_open_bracket && !keeps_brackets)) {
      out += code < 0x100 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
    } else {
      out += character;
    }
    at += length;
  }
  return out + '"';
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Whether some version of YAML reads the word as something else (YAML 1.1: bool, null).
bool is_reserved(std::string_view text) {
  constexpr std::array<std::string_view, 9> words = {"null", "true", "false", "yes", "no",
                                                     "on",   "off",  "y",     "n"};
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return std::find(words.begin(), words.end(), lower) != words.end();
}

/// Whether every reader of YAML accepts the text without quotes, anywhere.
bool is_plain(std::string_view text) {
  if (text.empty() || !(is_letter(text.front()) || text.front() == '_')) return false;
  if (text.back() == ' ' || is_reserved(text)) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') ||
           std::string_view("_-./ ").find(c) != std::string_view::npos;
  });
}

/// The longest prefix of `text` that the reader accepts, with U+FFFD for bytes that are not UTF-8.
std::string clipped_value(std::string_view text) {
  std::string kept;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    const std::string_view character = length == 0 ? kReplacement : text.substr(at, length);
    if (kept.size() + character.size() > kLongestText) break;
    kept += character;
    at += std::max<std::size_t>(length, 1);
  }
  return kept;
}

}  // namespace

std::string yaml_scalar(std::string_view text) {
  return is_plain(text) ? std::string(text) : quoted(text);
}

std::string clipped_scalar(std::string_view text) { return yaml_scalar(clipped_value(text)); }

std::string yaml_block_key(const std::string& key) {
  std::string written = yaml_scalar(key);
  if (written.size() <= kLongestPlainKey) return fmt::format("  {}: ", written);
  return fmt::format("  ? {}\n  : ", written);
}

void FlowMap::add(std::string_view key, std::string_view value) {
  if (!pieces_.empty()) pieces_.back() += ',';
  pieces_.push_back(fmt::format("{}: {}", key, value));
}

void FlowMap::add(std::string_view key, Pieces values) {
  values.front().insert(0, fmt::format("{}: ", key));
  if (!pieces_.empty()) pieces_.back() += ',';
  pieces_.insert(pieces_.end(), std::make_move_iterator(values.begin()),
                 std::make_move_iterator(values.end()));
}

Pieces FlowMap::pieces() && {
  pieces_.front().insert(0, "{");
  pieces_.back() += '}';
  return std::move(pieces_);
}

Pieces flow_list_of(std::vector<Pieces> items) {
  Pieces all;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i + 1 < items.size()) items[i].back() += ',';
    all.insert(all.end(), std::make_move_iterator(items[i].begin()),
               std::make_move_iterator(items[i].end()));
  }
  all.front().insert(0, 1, '[');
  all.back() += ']';
  return all;
}

Pieces flow_list(Pieces items) {
  if (items.empty()) return {"[]"};
  for (std::size_t i = 0; i + 1 < items.size(); ++i) items[i] += ',';
  items.front().insert(0, "[");
  items.back() += ']';
  return items;
}

void add_lines(std::string& text, std::string_view lead, const Pieces& pieces) {
  const std::size_t indent = lead.find_first_not_of(' ') + 3;
  text += lead;
  std::size_t column = lead.size();
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0 && column + 1 + pieces[i].size() > kWidth) {
      text += '\n';
      text.append(indent, ' ');
      column = indent;
    } else if (i > 0) {
      text += ' ';
      ++column;
    }
    text += pieces[i];
    column += pieces[i].size();
  }
  text += '\n';
}

}  // namespace plumbline
