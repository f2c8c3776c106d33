// What values an option takes, and what is said of another one.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <CLI/Error.hpp>
#include <CLI/Validators.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline {

/// What a check says of a value: the value, the rule that it breaks ("is no whole number between 1
/// and 4"), and help or "". The text of CLI11's error carries it from the check to its reader.
struct RefusedValue {
  std::string value;
  std::string rule;
  std::string help;

  std::string text() const;
  /// Of a text that `text` made, behind the name of an option or not.
  static RefusedValue of(std::string_view text);
};

/// The numbers from `min` to `max`.
CLI::Validator between(std::int64_t min, std::int64_t max);
CLI::Validator between_reals(double min, double max);

/// One of these words.
CLI::Validator one_of(const std::vector<std::string>& words);

}  // namespace plumbline
