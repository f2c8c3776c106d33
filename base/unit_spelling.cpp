// A word is changed into our spelling step by step. Case matters only for bits and bytes.
//
// SPDX-License-Identifier: MIT
#include "base/unit_spelling.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/diagnostic.h"

namespace plumbline {
namespace {

/// Replaces `theirs` at the end of a word by `ours`. Returns whether it did.
bool respell_end(std::string& word, std::string_view theirs, std::string_view ours) {
  if (!lower_case(word).ends_with(theirs)) return false;
  word.replace(word.size() - theirs.size(), theirs.size(), ours);
  return true;
}

/// Applied one after the other.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kEnds = {
    {{"flops", "FLOP/s"},
     {"ps", "/s"},
     {"bits/s", "bit/s"},
     {"bytes/s", "B/s"},
     {"byte/s", "B/s"},
     {"bytes", "B"},
     {"byte", "B"}}};

/// Only the first that fits is applied.
constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kTimes = {
    {{"seconds", "s"},
     {"second", "s"},
     {"secs", "s"},
     {"sec", "s"},
     {"minutes", "min"},
     {"minute", "min"},
     {"mins", "min"},
     {"hours", "h"},
     {"hour", "h"},
     {"hrs", "h"},
     {"hr", "h"}}};

constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kParts = {
    {{"milli", "m"}, {"micro", "u"}, {"nano", "n"}}};

/// "microseconds" as "us".
std::string respelled_time(std::string word) {
  for (const auto& [theirs, ours] : kTimes) {
    if (respell_end(word, theirs, ours)) break;
  }
  for (const auto& [theirs, ours] : kParts) {
    if (lower_case(word).starts_with(theirs)) word.replace(0, theirs.size(), ours);
  }
  return word;
}

/// The word in our spelling, and other possible meanings: bits where it says "b".
std::vector<std::string> respellings(std::string_view written) {
  std::string word;
  for (const char c : written) {
    if (c != ' ') word += c;
  }
  word = respelled_time(std::move(word));
  for (const auto& [theirs, ours] : kEnds) respell_end(word, theirs, ours);
  if (word.ends_with("b/s")) {
    const std::string bits = word.substr(0, word.size() - 3) + "bit/s";
    if (word != lower_case(word)) return {bits};  // a writer who uses capitals means bits
    return {bits, word};
  }
  if (word.ends_with('b')) {
    const std::string bits = word.substr(0, word.size() - 1) + "bit/s";
    if (word != lower_case(word)) return {bits, word};
    return {bits, word + "/s", word};
  }
  if (!word.ends_with("/s")) return {word, word + "/s", word + 'B'};
  const std::string once = word.substr(0, word.size() - 2);
  return {word, once, once + "B/s"};
}

}  // namespace

std::vector<std::string_view> meant_units(std::string_view written,
                                          std::span<const std::string_view> units) {
  std::vector<std::string_view> meant;
  for (const std::string& word : respellings(written)) {
    for (const std::string_view unit : units) {
      if (lower_case(unit) != lower_case(word)) continue;
      if (std::find(meant.begin(), meant.end(), unit) == meant.end()) meant.push_back(unit);
    }
    if (!meant.empty() && !word.ends_with("bit/s")) break;  // only bits and bytes can both be meant
  }
  return meant;
}

}  // namespace plumbline
