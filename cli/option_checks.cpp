// CLI11's checks with our own texts.
//
// SPDX-License-Identifier: MIT
#include "cli/option_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/diagnostic.h"

namespace plumbline {
namespace {

/// The separator of the parts of a RefusedValue. No part contains it, as it is not printable.
constexpr char kBetween = '\x1f';

/// `check` with its own description (for help and completion) and our message.
template <class Refuse>
CLI::Validator told_as(const CLI::Validator& check, Refuse&& refuse) {
  CLI::Validator told = check;
  told.operation([check, refuse](std::string& value) {
    return check(value).empty() ? std::string() : refuse(value).text();
  });
  return told;
}

}  // namespace

std::string RefusedValue::text() const {
  return clipped(value) + kBetween + rule + kBetween + help;
}

RefusedValue RefusedValue::of(std::string_view text) {
  const std::size_t first = text.find(kBetween);
  const std::size_t second = first == text.npos ? text.npos : text.find(kBetween, first + 1);
  if (second == text.npos) return {std::string(text), "cannot be used here", ""};
  return {std::string(text.substr(0, first)),
          std::string(text.substr(first + 1, second - first - 1)),
          std::string(text.substr(second + 1))};
}

CLI::Validator between(std::int64_t min, std::int64_t max) {
  return told_as(CLI::Range(min, max), [min, max](const std::string& value) {
    return RefusedValue{value, fmt::format("is no whole number between {} and {}", min, max), ""};
  });
}

CLI::Validator between_reals(double min, double max) {
  return told_as(CLI::Range(min, max), [min, max](const std::string& value) {
    return RefusedValue{value, fmt::format("is no number between {:g} and {:g}", min, max), ""};
  });
}

CLI::Validator one_of(const std::vector<std::string>& words) {
  return told_as(CLI::IsMember(words), [words](const std::string& value) {
    return RefusedValue{value, fmt::format("is none of {}", fmt::join(words, ", ")),
                        did_you_mean(value, words)};
  });
}

}  // namespace plumbline
