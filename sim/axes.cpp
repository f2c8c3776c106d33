// Splitting and multiplying.
// SPDX-License-Identifier: MIT
#include "sim/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "models/quantity.h"

namespace plumbline {
namespace {

/// An argument with its values apart.
struct Axis {
  std::string key;
  std::vector<std::string> values;
  bool assigns = true;  ///< Has an '='.
};

Diagnostic wrong(const std::string& argument, const std::string& what,
                 const std::string& help = "") {
  const auto source = std::make_shared<const Source>(Source{"<command line>", argument, ""});
  Mark mark{source, 1, 1, static_cast<int>(std::max<std::size_t>(argument.size(), 1))};
  return input_error(mark, what, help);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// The pieces between commas that are in no brackets, braces, parentheses or quotes.
std::vector<std::string> pieces(std::string_view text) {
  std::vector<std::string> found(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{' || c == '(') {
      ++depth;
    } else if (c == ']' || c == '}' || c == ')') {
      --depth;
    } else if (c == ',' && depth == 0) {
      found.emplace_back();
      continue;
    }
    found.back() += c;
  }
  for (std::string& piece : found) piece = trimmed(piece);
  return found;
}

/// The numbers of a range, or what is wrong with it.
Result<std::vector<std::string>> range_values(const std::string& argument,
                                              std::string_view inside) {
  const std::vector<std::string> parts = pieces(inside);
  std::vector<std::int64_t> numbers;
  numbers.reserve(parts.size());
  for (const std::string& part : parts) {
    const auto number = parse_count(part);
    if (!number.value)
      return wrong(argument, fmt::format("'{}' in a range is no whole number", clipped(part)),
                   "range(from, to) or range(from, to, step)");
    numbers.push_back(*number.value);
  }
  if (numbers.size() < 2 || numbers.size() > 3)
    return wrong(argument, fmt::format("a range of {} numbers", numbers.size()),
                 "range(from, to) or range(from, to, step)");
  const std::int64_t step = numbers.size() == 3 ? numbers[2] : 1;
  if (step == 0 || numbers[0] >= numbers[1])
    return wrong(argument, fmt::format("range({}) holds nothing", inside),
                 "the first number is below the second, and the step is at least 1");
  const auto count = static_cast<std::size_t>((numbers[1] - numbers[0] + step - 1) / step);
  if (count > kMostCombinations)
    return wrong(argument, fmt::format("range({}) holds {} numbers, more than {}", inside, count,
                                       kMostCombinations));
  std::vector<std::string> values;
  values.reserve(count);
  for (std::int64_t n = numbers[0]; n < numbers[1]; n += step) values.push_back(std::to_string(n));
  return values;
}

Result<Axis> read_axis(const std::string& argument) {
  const std::size_t equals = argument.find('=');
  if (equals == std::string::npos) return Axis{argument, {""}, false};  // its reader tells
  Axis axis{argument.substr(0, equals), {}, true};
  for (const std::string& piece : pieces(std::string_view(argument).substr(equals + 1))) {
    constexpr std::string_view range = "range(";
    if (piece.starts_with(range) && piece.ends_with(')')) {
      auto values = range_values(
          argument, std::string_view(piece).substr(range.size(), piece.size() - range.size() - 1));
      if (!values) return values.problems();
      axis.values.insert(axis.values.end(), values->begin(), values->end());
    } else {
      axis.values.push_back(piece);
    }
  }
  const bool several = axis.values.size() > 1;
  if (several && std::find(axis.values.begin(), axis.values.end(), "") != axis.values.end())
    return wrong(argument,
                 fmt::format("'{}' has an empty value between its commas", clipped(argument)));
  return axis;
}

}  // namespace

Result<std::vector<std::vector<std::string>>> combinations(
    const std::vector<std::string>& arguments) {
  Diagnostics problems;
  std::vector<Axis> axes;
  axes.reserve(arguments.size());
  double count = 1;
  for (const std::string& argument : arguments) {
    auto axis = read_axis(argument);
    if (!keep(axis, problems)) continue;
    const auto same = [&](const Axis& other) { return other.key == axis->key; };
    if (std::any_of(axes.begin(), axes.end(), same) && axis->assigns) {
      problems.push_back(wrong(argument, fmt::format("'{}' stands twice", clipped(axis->key)),
                               "give all its values at once: key=1,2,4"));
    }
    count *= static_cast<double>(axis->values.size());
    axes.push_back(*std::move(axis));
  }
  if (problems.empty() && count > static_cast<double>(kMostCombinations)) {
    problems.push_back(
        wrong(arguments.back(), fmt::format("the values make {:.0f} combinations, more than {}",
                                            count, kMostCombinations)));
  }
  if (!problems.empty()) return problems;
  std::vector<std::vector<std::string>> all(1);
  for (const Axis& axis : axes) {
    std::vector<std::vector<std::string>> longer;
    longer.reserve(all.size() * axis.values.size());
    for (const auto& combination : all) {
      for (const std::string& value : axis.values) {
        longer.push_back(combination);
        longer.back().push_back(axis.assigns ? axis.key + '=' + value : axis.key);
      }
    }
    all = std::move(longer);
  }
  return all;
}

std::vector<std::vector<std::string>> varying_overrides(
    const std::vector<std::vector<std::string>>& combinations) {
  std::vector<std::vector<std::string>> different(combinations.size());
  for (std::size_t axis = 0; axis < combinations.front().size(); ++axis) {
    bool varies = false;
    for (const auto& combination : combinations)
      varies = varies || combination[axis] != combinations.front()[axis];
    for (std::size_t i = 0; varies && i < combinations.size(); ++i)
      different[i].push_back(combinations[i][axis]);
  }
  return different;
}

}  // namespace plumbline
