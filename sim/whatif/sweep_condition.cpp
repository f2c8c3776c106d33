// Conditions on numbers and on axes.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/sweep_condition.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/diagnostic.h"
#include "base/quantity.h"
#include "base/yaml.h"
#include "sim/whatif/row_number.h"

namespace plumbline {
namespace {

std::string without_spaces(std::string_view text) {
  constexpr std::string_view blanks = " \t";
  while (!text.empty() && blanks.find(text.front()) != blanks.npos) text.remove_prefix(1);
  while (!text.empty() && blanks.find(text.back()) != blanks.npos) text.remove_suffix(1);
  return std::string(text);
}

constexpr std::array kOperations = {"<", "<=", ">", ">=", "==", "!="};

/// A value of an axis as a number, a size, a time or a rate.
std::optional<double> number_in(const std::string& text) { return parse_real(text).value; }
std::optional<double> bytes_in(const std::string& text) {
  const auto bytes = parse_bytes(text).value;
  return bytes ? std::optional(static_cast<double>(bytes->count)) : std::nullopt;
}
std::optional<double> seconds_in(const std::string& text) {
  const auto time = parse_duration(text).value;
  return time ? std::optional(seconds(*time)) : std::nullopt;
}
std::optional<double> rate_in(const std::string& text) {
  const auto rate = parse_bandwidth(text).value;
  return rate ? std::optional(static_cast<double>(rate->count)) : std::nullopt;
}

using Reading = std::optional<double> (*)(const std::string&);

/// The first reading that accepts the text, or nullptr.
Reading reading_of(const std::string& text) {
  for (const Reading reading : {number_in, bytes_in, seconds_in, rate_in}) {
    if (reading(text)) return reading;
  }
  return nullptr;
}

/// For each value of an axis, whether it meets the bound. Requires: a bound that can be read, or ==
/// or !=.
std::vector<bool> met_by(const SweepAxis& axis, std::string_view operation,
                         const std::string& bound) {
  const Reading reading = reading_of(bound);
  std::vector<bool> met;
  met.reserve(axis.values.size());
  for (const std::string& value : axis.values) {
    const std::optional<double> number = reading ? reading(value) : std::nullopt;
    if (number) {
      met.push_back(compare(operation, *number, *reading(bound)));
    } else {
      met.push_back(operation == "==" ? value == bound : operation == "!=" && value != bound);
    }
  }
  return met;
}

/// `one of gpipe, 1f1b`.
std::string values_of(const SweepAxis& axis) {
  constexpr std::size_t max = 10;
  std::vector<std::string> values(
      axis.values.begin(),
      axis.values.begin() + static_cast<std::ptrdiff_t>(std::min(axis.values.size(), max)));
  for (std::string& value : values) value = clipped(value);
  if (axis.values.size() > max)
    values.push_back(fmt::format("and {} more", axis.values.size() - max));
  return fmt::format("one of {}", fmt::join(values, ", "));
}

/// A condition on the value of a row's point on the axis.
Condition axis_condition(const std::string& text, const std::vector<SweepAxis>& axes,
                         std::size_t axis, std::vector<bool> met) {
  std::uint64_t stride = 1;  // the last axis varies fastest
  for (std::size_t i = axis + 1; i < axes.size(); ++i) stride *= axes[i].values.size();
  return {text, [stride, met = std::move(met)](const SweepRow& row) {
            return met[static_cast<std::size_t>(row.point / stride % met.size())];
          }};
}

/// An error in the text of a condition.
Diagnostic wrong_at(const std::string& text, std::size_t at, std::size_t length,
                    std::string message, std::string help) {
  const auto source = std::make_shared<const Source>(Source{"--where", text, ""});
  return input_error(
      {source, 1, static_cast<int>(at) + 1, static_cast<int>(std::max<std::size_t>(length, 1))},
      std::move(message), std::move(help));
}

}  // namespace

bool compare(std::string_view operation, double a, double b) {
  if (operation == "<") return a < b;
  if (operation == "<=") return a <= b;
  if (operation == ">") return a > b;
  if (operation == ">=") return a >= b;
  return (a == b) == (operation == "==");
}

Parsed<double> parse_bound(const RowNumber& number, const std::string& value) {
  using Unit = RowNumber::Unit;
  if (number.unit == Unit::truth) {
    if (value == "yes" || value == "true") return {1.0, ""};
    if (value == "no" || value == "false") return {0.0, ""};
    return {std::nullopt, "is neither yes nor no"};
  }
  Parsed<double> bare = parse_real(value);
  if (bare.value) return bare;
  if (number.unit == Unit::bytes) {
    const auto bytes = parse_bytes(value);
    if (!bytes.value) return {std::nullopt, bytes.problem};
    return {static_cast<double>(bytes.value->count), ""};
  }
  if (number.unit == Unit::seconds) {
    const auto time = parse_duration(value);
    if (!time.value) return {std::nullopt, time.problem};
    return {seconds(*time.value), ""};
  }
  if (number.unit == Unit::flops_per_second) {
    const auto rate = parse_flops_per_second(value);
    if (!rate.value) return {std::nullopt, rate.problem};
    return {static_cast<double>(rate.value->count), ""};
  }
  return bare;
}

Result<ConditionText> split_condition(const std::string& text) {
  const std::size_t at = text.find_first_of("<>=!");
  const std::size_t end = text.find_first_not_of("<>=!", at);
  ConditionText condition{text, "", "", ""};
  if (at != std::string::npos) condition.operation = text.substr(at, end - at);
  if (std::find(kOperations.begin(), kOperations.end(), condition.operation) == kOperations.end()) {
    const std::string& operation = condition.operation;
    return wrong_at(text, at == std::string::npos ? 0 : at,
                    operation.empty() ? text.size() : operation.size(),
                    operation.empty() ? fmt::format("'{}' compares nothing", clipped(text))
                                      : fmt::format("'{}' is no comparison", clipped(operation)),
                    "one of < <= > >= == !=, such as 'peak_memory_bytes < 80 GB'");
  }
  condition.key = dotted(without_spaces(std::string_view(text).substr(0, at)));
  if (end != std::string::npos)
    condition.value = without_spaces(std::string_view(text).substr(end));
  return condition;
}

bool is_comparable(const std::string& value) { return reading_of(value) != nullptr; }

bool meets(const ConditionText& condition, const std::string& found) {
  return met_by({condition.key, {found}}, condition.operation, condition.value).front();
}

Result<Condition> parse_condition(const std::string& text, const std::vector<SweepAxis>& axes) {
  const auto parts = split_condition(text);
  if (!parts) return parts.problems();
  const std::string& key = parts->key;
  const std::string& operation = parts->operation;
  const std::string& value = parts->value;
  const std::size_t end =
      text.find_first_not_of("<>=!", text.find_first_of("<>=!"));  // after the operation
  const auto wrong = [&](std::size_t at, std::size_t length, std::string message,
                         std::string help) {
    return wrong_at(text, at, length, std::move(message), std::move(help));
  };
  const auto wrong_value = [&](std::string_view problem, std::string help) {
    return wrong(end == std::string::npos ? text.size() : end,
                 end == std::string::npos ? 1 : text.size() - end,
                 fmt::format("{} is compared with '{}', which {}", key, clipped(value), problem),
                 std::move(help));
  };
  const auto axis =
      std::find_if(axes.begin(), axes.end(), [&](const SweepAxis& a) { return a.key == key; });
  if (axis != axes.end()) {
    const bool equality = operation == "==" || operation == "!=";
    const Reading reading = reading_of(value);
    if (!equality && reading == nullptr)
      return wrong_value("is no number, size, time or rate", "only == and != take words");
    if (!equality && std::none_of(axis->values.begin(), axis->values.end(), reading))
      return wrong_value("is of another kind than its values", values_of(*axis));
    std::vector<bool> met = met_by(*axis, operation, value);
    if (equality && std::find(met.begin(), met.end(), operation == "==") == met.end())
      return wrong_value("is none of its values", values_of(*axis));
    return axis_condition(text, axes, static_cast<std::size_t>(axis - axes.begin()),
                          std::move(met));
  }
  const RowNumber* const number = find_row_number(key);
  if (!number) {
    std::vector<std::string> names;
    names.reserve(row_numbers().size() + axes.size());
    for (const RowNumber& known : row_numbers()) names.emplace_back(known.name);
    for (const SweepAxis& one : axes) names.push_back(one.key);
    std::string help = did_you_mean(key, names);
    if (help.empty()) help = fmt::format("one of {}", fmt::join(names, ", "));
    return wrong(
        0, key.size(),
        fmt::format("'{}' is no number of a row, and no key that the sweep varies", clipped(key)),
        help);
  }
  const Parsed<double> bound = parse_bound(*number, value);
  if (!bound.value) return wrong_value(bound.problem, "");
  return Condition{text,
                   [number, operation, bound = *bound.value](const SweepRow& row) {
                     const auto held = row.numbers ? number->of(*row.numbers) : std::nullopt;
                     return held && compare(operation, *held, bound);
                   },
                   std::string(number->name)};
}

}  // namespace plumbline
