// Expectations, read and compared.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/expectation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string_view>
#include <utility>

#include "base/quantity.h"
#include "sim/whatif/sweep_condition.h"

namespace plumbline {
namespace {

constexpr RowNumber kMakespan{"makespan_s", "makespan", RowNumber::Unit::seconds, nullptr};

/// A name without its unit: "iteration_time", "throughput".
std::string_view without_unit(std::string_view number) {
  for (const std::string_view unit : {"_samples_per_s", "_per_s", "_bytes", "_s"}) {
    if (number.ends_with(unit)) return number.substr(0, number.size() - unit.size());
  }
  return number;
}

/// All numbers of an expectation.
std::vector<RowNumber> expected_numbers() {
  std::vector<RowNumber> numbers = {kMakespan};
  numbers.insert(numbers.end(), row_numbers().begin(), row_numbers().end());
  return numbers;
}

std::optional<RowNumber> number_of_name(const std::string& written) {
  for (const RowNumber& one : expected_numbers()) {
    if (one.name == written || without_unit(one.name) == written) return one;
  }
  return std::nullopt;
}

/// `=` as `==`.
std::string with_double_equals(const std::string& text) {
  const std::size_t at = text.find_first_of("<>=!");
  const bool is_single = at != text.npos && text[at] == '=' &&
                         (at + 1 == text.size() ||
                          std::string_view("<>=!").find(text[at + 1]) == std::string_view::npos);
  return is_single ? text.substr(0, at) + "=" + text.substr(at) : text;
}

/// The whole value, so that two that differ look different.
std::string value_text(const RowNumber& number, double value) {
  using Unit = RowNumber::Unit;
  if (number.unit == Unit::truth) return value != 0 ? "yes" : "no";
  if (number.unit == Unit::bytes) {
    const Bytes bytes{std::llround(value)};
    return fmt::format("{} ({} B)", to_text(bytes), bytes.count);
  }
  if (number.unit == Unit::seconds) {
    const double ns = std::round(value * 1e9);
    constexpr std::array<std::pair<double, const char*>, 3> units = {
        {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}}};
    for (const auto& [size, unit] : units) {
      if (ns >= size) return fmt::format("{:.15g} {}", ns / size, unit);
    }
    return ns == 0 ? "0 s" : fmt::format("{:.15g} ns", ns);
  }
  return fmt::format("{:.10g}", value);
}

bool nearly_equal(const RowNumber& number, double a, double b) {
  constexpr double share = 1e-9;
  const double least = number.unit == RowNumber::Unit::seconds ? 1.0000001e-9 : 0;
  return std::abs(a - b) <= std::max(least, share * std::max(std::abs(a), std::abs(b)));
}

Diagnostic wrong_expectation(const std::string& text, std::string message, std::string help) {
  const auto source = std::make_shared<const Source>(Source{"--expect", text, ""});
  return input_error({source, 1, 1, static_cast<int>(std::max<std::size_t>(text.size(), 1))},
                     std::move(message), std::move(help));
}

}  // namespace

Result<Expectation> parse_expectation(const std::string& text) {
  const auto parts = split_condition(with_double_equals(text));
  if (!parts)
    return wrong_expectation(text, parts.problems().front().message,
                             "one of < <= > >= = !=, such as 'makespan <= 15 ms'");
  const auto number = number_of_name(parts->key);
  if (!number) {
    std::vector<std::string> names;
    for (const RowNumber& one : expected_numbers()) names.emplace_back(one.name);
    std::vector<std::string> offered = names;
    for (const RowNumber& one : expected_numbers()) {
      if (without_unit(one.name) != one.name) offered.emplace_back(without_unit(one.name));
    }
    std::string help = did_you_mean(parts->key, offered);
    if (!help.empty()) help += "; ";
    help += fmt::format("one of {}", fmt::join(names, ", "));
    return wrong_expectation(text, fmt::format("'{}' is no number of a run", clipped(parts->key)),
                             std::move(help));
  }
  const Parsed<double> bound = parse_bound(*number, parts->value);
  if (!bound.value)
    return wrong_expectation(text,
                             fmt::format("{} is compared with '{}', which {}", parts->key,
                                         clipped(parts->value), bound.problem),
                             parts->value.ends_with('%') ? "a share is a number, such as 0.3" : "");
  return Expectation{parts->key,       *number,      number->of == nullptr,
                     parts->operation, parts->value, *bound.value};
}

MetExpectation meets(const Expectation& expectation, const Outcome& outcome) {
  const std::string& operation = expectation.operation;
  const std::string wanted =
      (operation == "==" ? std::string() : operation + " ") + expectation.value;
  const auto held = expectation.of_makespan ? std::optional(seconds(outcome.metrics.makespan))
                                            : expectation.number.of(numbers_of(outcome));
  if (!held)
    return {false, fmt::format("this run has no {}, expected {}", expectation.name, wanted)};
  bool met = compare(operation, *held, expectation.bound);
  if (nearly_equal(expectation.number, *held, expectation.bound))
    met = operation == "==" || operation == "<=" || operation == ">=";
  const std::string value = value_text(expectation.number, *held);
  if (!met) return {false, fmt::format("{} is {}, expected {}", expectation.name, value, wanted)};
  return {true, operation == "=="
                    ? fmt::format("{} = {}", expectation.name, value)
                    : fmt::format("{} = {}, expected {}", expectation.name, value, wanted)};
}

}  // namespace plumbline
