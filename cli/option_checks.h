// Checks of option values, and their error messages.
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

/// A value that a check refused: the value, the rule that it breaks ("is no whole number between 1
/// and 4"), and help or "". It travels from the check to its reader in the text of CLI11's error.
struct RefusedValue {
  std::string value;
  std::string rule;
  std::string help;

  std::string text() const;
  /// Reads a text that text() made, with or without the name of an option before it.
  static RefusedValue of(std::string_view text);
};

/// The numbers from `min` to `max`.
CLI::Validator between(std::int64_t min, std::int64_t max);
CLI::Validator between_reals(double min, double max);

/// One of these words.
CLI::Validator one_of(const std::vector<std::string>& words);

}  // namespace plumbline
