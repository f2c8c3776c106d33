// Breaking lines at spaces.
//
// SPDX-License-Identifier: MIT
#include "base/wrap.h"

#include <algorithm>

namespace plumbline {

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;  // no continuation of a character
  }));
}

namespace {

/// The end of the next piece of a word that begins at `word`: all of it. Of an address of the web
/// that is too long for a line, the last slash with which it fits.
std::size_t piece_end(std::string_view line, std::size_t word, std::size_t room) {
  const std::size_t end = std::min(line.find(' ', word), line.size());
  const std::string_view whole = line.substr(word, end - word);
  const bool is_address = whole.starts_with("www.") || whole.find("://") != std::string_view::npos;
  if (!is_address || characters(whole) <= room) return end;
  std::size_t best = end;
  for (std::size_t slash = line.find('/', word); slash < end; slash = line.find('/', slash + 1)) {
    if (best < end && characters(line.substr(word, slash + 1 - word)) > room) break;
    best = slash + 1;
  }
  return best;
}

}  // namespace

std::string wrapped(std::string_view line, PageWidth width, std::size_t hang) {
  if (!width || characters(line) <= *width) return std::string(line);
  hang = std::min(hang, *width / 2);
  const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
  std::string text(line.substr(0, indent));
  std::size_t used = indent;
  bool has_word = false;
  for (std::size_t at = indent; at < line.size();) {
    const std::size_t word = std::min(line.find_first_not_of(' ', at), line.size());
    const std::size_t end = piece_end(line, word, *width > hang ? *width - hang : 1);
    const std::size_t spaces = word - at;
    const std::size_t length = characters(line.substr(word, end - word));
    if (has_word && used + spaces + length > *width) {
      text += '\n' + std::string(hang, ' ');
      used = hang;
    } else {
      text.append(spaces, ' ');
      used += spaces;
    }
    text += line.substr(word, end - word);
    used += length;
    has_word = true;
    at = end;
  }
  return text;
}

std::string wrapped(std::string_view line, PageWidth width) {
  return wrapped(line, width, std::min(line.find_first_not_of(' '), line.size()) + 2);
}

}  // namespace plumbline
