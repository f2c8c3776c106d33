// Splits arguments into axes, and combines the values of axes.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/axes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "base/quantity.h"
#include "sim/scenario/layout_string.h"

namespace plumbline {
namespace {

/// An argument, split into key and values.
struct Argument {
  std::string key;
  std::vector<std::string> values;
  bool assigns = true;  ///< Has an '='.
};

Mark mark_of(const std::string& argument) {
  const auto source = std::make_shared<const Source>(Source{"<command line>", argument, ""});
  return {source, 1, 1, static_cast<int>(std::max<std::size_t>(argument.size(), 1))};
}

Diagnostic wrong(const std::string& argument, const std::string& what,
                 const std::string& help = "") {
  return input_error(mark_of(argument), what, help);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// The pieces of a text, split at the commas outside brackets, braces, parentheses and quotes.
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

/// The numbers of a range. Errors: a text that is no range, an empty or too long range.
Result<std::vector<std::string>> range_values(std::string_view inside, const Mark& mark) {
  const std::vector<std::string> parts = pieces(inside);
  std::vector<std::int64_t> numbers;
  numbers.reserve(parts.size());
  for (const std::string& part : parts) {
    const auto number = parse_count(part);
    if (!number.value)
      return input_error(mark, fmt::format("'{}' in a range is no whole number", clipped(part)),
                         "range(from, to) or range(from, to, step)");
    numbers.push_back(*number.value);
  }
  if (numbers.size() < 2 || numbers.size() > 3)
    return input_error(mark, fmt::format("a range of {} numbers", numbers.size()),
                       "range(from, to) or range(from, to, step)");
  const std::int64_t step = numbers.size() == 3 ? numbers[2] : 1;
  if (step == 0 || numbers[0] >= numbers[1])
    return input_error(mark, fmt::format("range({}) holds nothing", inside),
                       "the first number is below the second, and the step is at least 1");
  const auto count = static_cast<std::size_t>((numbers[1] - numbers[0] + step - 1) / step);
  if (count > kMaxCombinations)
    return input_error(mark, fmt::format("range({}) holds {} numbers, more than {}", inside, count,
                                         kMaxCombinations));
  std::vector<std::string> values;
  values.reserve(count);
  for (std::int64_t n = numbers[0]; n < numbers[1]; n += step) values.push_back(std::to_string(n));
  return values;
}

/// The text between the parentheses of `range(...)`; nothing for another text.
std::optional<std::string_view> inside_of_range(std::string_view text) {
  constexpr std::string_view range = "range(";
  if (!text.starts_with(range) || !text.ends_with(')')) return std::nullopt;
  return text.substr(range.size(), text.size() - range.size() - 1);
}

/// Joins the pieces of Megatron-LM's layouts, which contain commas. A layout begins with its
/// embedding, so a piece without one belongs to the layout before it.
std::vector<std::string> with_whole_layouts(const std::vector<std::string>& pieces) {
  std::vector<std::string> whole;
  for (const std::string& piece : pieces) {
    const bool goes_on = !whole.empty() && is_layout_string(whole.back()) &&
                         is_layout_string(piece) && piece.find('E') == std::string::npos;
    if (goes_on)
      whole.back() += "," + piece;
    else
      whole.push_back(piece);
  }
  return whole;
}

Result<Argument> split(const std::string& argument) {
  const std::size_t equals = argument.find('=');
  if (equals == std::string::npos)
    return Argument{argument, {""}, false};  // its reader reports this
  Argument axis{dotted(argument.substr(0, equals)), {}, true};
  std::vector<std::string> written = pieces(std::string_view(argument).substr(equals + 1));
  if (axis.key == "plan.partition") written = with_whole_layouts(written);
  for (const std::string& piece : written) {
    if (const auto inside = inside_of_range(piece)) {
      auto values = range_values(*inside, mark_of(argument));
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

/// All arguments, split into keys and values.
Result<std::vector<Argument>> split_all(const std::vector<std::string>& arguments) {
  Diagnostics problems;
  std::vector<Argument> axes;
  axes.reserve(arguments.size());
  for (const std::string& argument : arguments) {
    auto axis = split(argument);
    if (!keep(axis, problems)) continue;
    const auto same = [&](const Argument& other) { return other.key == axis->key; };
    if (std::any_of(axes.begin(), axes.end(), same) && axis->assigns) {
      problems.push_back(wrong(argument, fmt::format("'{}' stands twice", clipped(axis->key)),
                               "give all its values at once: key=1,2,4"));
    }
    axes.push_back(*std::move(axis));
  }
  if (!problems.empty()) return problems;
  return axes;
}

/// The path of an axis in a `sweep` section.
std::vector<YamlOverride::Key> path_of(const YamlNode::Entry& entry) {
  std::vector<YamlOverride::Key> path;
  const std::string key = dotted(entry.key);
  for (std::size_t at = 0;;) {
    const std::size_t end = key.find('.', at);
    path.push_back({key.substr(at, end - at), entry.mark, entry.mark});
    if (end == std::string::npos) return path;
    at = end + 1;
  }
}

/// The values of an axis in a `sweep` section.
Result<std::vector<YamlNode>> values_of(const YamlNode::Entry& entry) {
  const YamlNode& node = entry.value;
  if (node.kind == YamlNode::Kind::sequence) {
    if (node.items.empty())
      return input_error(node.mark, fmt::format("sweep.{} is an empty list", clipped(entry.key)));
    return node.items;
  }
  const auto inside =
      node.kind == YamlNode::Kind::scalar ? inside_of_range(node.text) : std::nullopt;
  if (!inside) {
    const std::string what = node.kind == YamlNode::Kind::map ? "is a map"
                             : node.kind == YamlNode::Kind::scalar
                                 ? fmt::format("is '{}'", clipped(node.text))
                                 : "has no value";
    return input_error(entry.mark,
                       fmt::format("sweep.{} {}, where a list of values or a range is wanted",
                                   clipped(entry.key), what),
                       node.kind == YamlNode::Kind::map
                           ? "write the key with its dots: schedule.micro_batches: [4, 8]"
                           : "schedule.micro_batches: [4, 8], or range(4, 65, 4)");
  }
  const auto numbers = range_values(*inside, node.mark);
  if (!numbers) return numbers.problems();
  std::vector<YamlNode> values(numbers->size(), node);
  for (std::size_t i = 0; i < values.size(); ++i) values[i].text = (*numbers)[i];
  return values;
}

}  // namespace

std::string flow_text(const YamlNode& node) {
  std::vector<std::string> parts;
  switch (node.kind) {
    case YamlNode::Kind::null:
      return "null";
    case YamlNode::Kind::scalar:
      return node.text;
    case YamlNode::Kind::sequence:
      parts.reserve(node.items.size());
      for (const YamlNode& item : node.items) parts.push_back(flow_text(item));
      return fmt::format("[{}]", fmt::join(parts, ", "));
    case YamlNode::Kind::map:
      parts.reserve(node.entries.size());
      for (const YamlNode::Entry& entry : node.entries)
        parts.push_back(fmt::format("{}: {}", entry.key, flow_text(entry.value)));
      return fmt::format("{{{}}}", fmt::join(parts, ", "));
  }
  return "";
}

Result<std::vector<Axis>> read_axes(const std::vector<std::string>& arguments) {
  const auto split = split_all(arguments);
  if (!split) return split.problems();
  Diagnostics problems;
  std::vector<Axis> axes;
  axes.reserve(split->size());
  for (const Argument& argument : *split) {
    Axis axis{argument.key, argument.values, {}};
    axis.changes.reserve(axis.values.size());
    for (std::string& value : axis.values) {
      auto change = parse_override(argument.assigns ? argument.key + '=' + value : argument.key);
      if (keep(change, problems)) axis.changes.push_back(*std::move(change));
      if (value.empty()) value = "null";
    }
    axes.push_back(std::move(axis));
  }
  if (!problems.empty()) return problems;
  return axes;
}

std::vector<Axis> read_axes(const YamlNode& section, Diagnostics& problems) {
  std::vector<Axis> axes;
  if (section.kind != YamlNode::Kind::map) {
    problems.push_back(input_error(section.mark, "sweep is no map from keys to their values",
                                   "sweep: {schedule.micro_batches: [4, 8, 16]}"));
    return axes;
  }
  axes.reserve(section.entries.size());
  for (const YamlNode::Entry& entry : section.entries) {
    const auto values = values_of(entry);
    if (!keep(values, problems)) continue;
    const auto path = path_of(entry);
    if (std::any_of(path.begin(), path.end(), [](const auto& key) { return key.text.empty(); })) {
      problems.push_back(input_error(entry.mark, "a key of the path is empty"));
      continue;
    }
    Axis axis{dotted(entry.key), {}, {}};
    axis.values.reserve(values->size());
    axis.changes.reserve(values->size());
    for (const YamlNode& value : *values) {
      axis.values.push_back(flow_text(value));
      axis.changes.push_back({path, value});
    }
    axes.push_back(std::move(axis));
  }
  return axes;
}

Result<std::vector<std::vector<std::string>>> combinations(
    const std::vector<std::string>& arguments) {
  const auto axes = split_all(arguments);
  if (!axes) return axes.problems();
  double count = 1;
  for (const Argument& axis : *axes) count *= static_cast<double>(axis.values.size());
  if (count > static_cast<double>(kMaxCombinations)) {
    return wrong(arguments.back(), fmt::format("the values make {:.0f} combinations, more than {}",
                                               count, kMaxCombinations));
  }
  std::vector<std::vector<std::string>> all(1);
  for (const Argument& axis : *axes) {
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
