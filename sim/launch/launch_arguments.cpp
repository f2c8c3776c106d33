// Collecting arguments, and typed reads of them.
//
// SPDX-License-Identifier: MIT
#include "sim/launch/launch_arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "base/quantity.h"
#include "base/yaml.h"
#include "sim/launch/shell_words.h"

namespace plumbline {
namespace {

/// A name in lower case, with dashes and without those in front.
std::string plain_name(std::string_view text) {
  while (text.starts_with('-')) text.remove_prefix(1);
  std::string name = lower_case(text);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

/// 4096 of "4_096", "4096.0" and "4.096e3"; -1 of "-1".
std::optional<std::int64_t> whole(std::string text) {
  std::erase(text, '_');
  if (text.starts_with('-')) {
    const auto size = parse_count(text.substr(1));
    return size.value ? std::optional(-*size.value) : std::nullopt;
  }
  if (const auto count = parse_count(text); count.value) return count.value;
  const auto real = parse_real(text);
  if (!real.value || *real.value > 1e15) return std::nullopt;
  const auto rounded = static_cast<std::int64_t>(*real.value);
  return static_cast<double>(rounded) == *real.value ? std::optional(rounded) : std::nullopt;
}

}  // namespace

void LaunchArguments::add(LaunchArgument argument) {
  const std::string name = argument.name;
  if (!has(name)) order_.push_back(name);
  all_[name] = std::move(argument);
}

std::vector<std::string> LaunchArguments::add_command(const std::shared_ptr<const Source>& source) {
  const ShellWords script = shell_words(source);
  for (std::size_t i = 0; i < script.words.size(); ++i) {
    const ShellWord& word = script.words[i];
    const bool is_option = word.text.starts_with("--") && word.text.size() > 2 &&
                           std::isalpha(static_cast<unsigned char>(word.text[2]));
    if (!is_option) continue;
    LaunchArgument argument;
    const std::size_t equals = word.text.find('=');
    argument.told = word.text.substr(0, equals);
    argument.name = plain_name(argument.told);
    argument.mark = word.mark;
    if (equals != std::string::npos) argument.values.push_back(word.text.substr(equals + 1));
    bool ends = word.ends_line;
    for (std::size_t j = i + 1; j < script.words.size() && !ends; ++j) {
      if (script.words[j].text.starts_with("--")) break;
      argument.values.push_back(script.words[j].text);
      ends = script.words[j].ends_line;
    }
    add(std::move(argument));
  }
  std::vector<std::string> remarks;
  if (script.has_branches)
    remarks.emplace_back(
        "the script branches: the arguments of all branches are read, and the last of a name "
        "counts");
  if (!script.unknown.empty())
    remarks.push_back(
        fmt::format("not known here, and read as empty: {}", fmt::join(script.unknown, ", ")));
  return remarks;
}

void LaunchArguments::add_tree(const YamlNode& root, bool by_path) {
  for (const YamlNode::Entry& entry : root.entries)
    add_node(entry.value, entry.key, entry.key, by_path);
}

void LaunchArguments::add_node(const YamlNode& node, const std::string& key,
                               const std::string& path, bool by_path) {
  if (node.kind == YamlNode::Kind::null) return;
  if (node.kind == YamlNode::Kind::map) {
    for (const YamlNode::Entry& entry : node.entries)
      add_node(entry.value, entry.key, path + '.' + entry.key, by_path);
    return;
  }
  LaunchArgument argument{
      by_path ? path : plain_name(key), {}, node.mark, key.starts_with("--") ? key : path};
  if (node.kind == YamlNode::Kind::scalar) {
    // Megatron-LM's test cases write `--recompute-modules: [a b c]`, one text of several words.
    argument.values.push_back(node.text);
  } else {
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const YamlNode& item = node.items[i];
      if (item.kind == YamlNode::Kind::map)
        add_node(item, key, fmt::format("{}.{}", path, i), by_path);
      if (item.kind == YamlNode::Kind::sequence)
        add_node(item, key, fmt::format("{}.{}", path, i), by_path);
      if (item.kind == YamlNode::Kind::scalar) argument.values.push_back(item.text);
    }
    if (argument.values.empty()) return;
  }
  add(std::move(argument));
}

const LaunchArgument* LaunchArguments::take(std::string_view name) {
  pass_over(name);
  const auto found = all_.find(name);
  return found == all_.end() ? nullptr : &found->second;
}

void LaunchArguments::pass_over(std::string_view name) { read_[std::string(name)] = true; }

bool LaunchArguments::flag(std::string_view name) { return flag_or(name, false); }

bool LaunchArguments::flag_or(std::string_view name, bool otherwise) {
  const LaunchArgument* const argument = take(name);
  if (!argument) return otherwise;
  if (argument->values.empty()) return true;
  const std::string value = lower_case(argument->values.front());
  return value != "false" && value != "0" && value != "none" && value != "null";
}

std::optional<std::int64_t> LaunchArguments::count(std::string_view name, std::int64_t min,
                                                   std::int64_t max) {
  const LaunchArgument* const argument = take(name);
  if (!argument) return std::nullopt;
  const std::string text = argument->values.empty() ? "" : argument->values.front();
  if (lower_case(text) == "none" || lower_case(text) == "null") return std::nullopt;
  const auto value = whole(text);
  if (!value) {
    error(name, text.empty() ? fmt::format("{} has no value", argument->told)
                             : fmt::format("{} is '{}', which is no whole number", argument->told,
                                           clipped(text)));
  } else if (*value < min || *value > max) {
    error(name, fmt::format("{} is {}, which is not between {} and {}", argument->told, *value, min,
                            max));
  } else {
    return value;
  }
  return std::nullopt;
}

std::int64_t LaunchArguments::count_or(std::string_view name, std::int64_t otherwise) {
  return count(name).value_or(otherwise);
}

std::optional<double> LaunchArguments::real(std::string_view name) {
  const std::string text = word(name);
  if (text.empty()) return std::nullopt;
  const auto value = parse_real(text);
  if (!value.value)
    error(name, fmt::format("{} is '{}', which {}", told(name), clipped(text), value.problem));
  return value.value;
}

std::string LaunchArguments::word(std::string_view name) {
  const LaunchArgument* const argument = take(name);
  return argument && !argument->values.empty() ? argument->values.front() : "";
}

std::vector<std::string> LaunchArguments::words(std::string_view name) {
  const LaunchArgument* const argument = take(name);
  std::vector<std::string> words;
  if (!argument) return words;
  for (const std::string& value : argument->values) {
    for (std::size_t at = 0; at < value.size();) {
      const std::size_t end = std::min(value.find_first_of(", []", at), value.size());
      if (end > at) words.push_back(value.substr(at, end - at));
      at = end + 1;
    }
  }
  return words;
}

std::string_view LaunchArguments::either(std::initializer_list<std::string_view> names) const {
  for (const std::string_view name : names) {
    if (has(name)) return name;
  }
  return *names.begin();
}

std::string LaunchArguments::told(std::string_view name) const {
  const auto found = all_.find(name);
  return found == all_.end() ? fmt::format("--{}", name) : found->second.told;
}

Mark LaunchArguments::mark(std::string_view name) const {
  const auto found = all_.find(name);
  return found == all_.end() ? Mark{} : found->second.mark;
}

void LaunchArguments::error(std::string_view name, std::string message, std::string help) {
  problems_->push_back(input_error(mark(name), std::move(message), std::move(help)));
}

std::vector<const LaunchArgument*> LaunchArguments::unread() const {
  std::vector<const LaunchArgument*> left;
  for (const std::string& name : order_) {
    if (read_.find(name) == read_.end()) left.push_back(&all_.at(name));
  }
  return left;
}

}  // namespace plumbline
