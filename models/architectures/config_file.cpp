// Reads with fallbacks.
//
// SPDX-License-Identifier: MIT
#include "models/architectures/config_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace plumbline {

std::map<std::string, Mark, std::less<>> take_nulls(YamlNode& map) {
  std::map<std::string, Mark, std::less<>> nulls;
  std::erase_if(map.entries, [&](const YamlNode::Entry& entry) {
    const bool is_null = entry.value.kind == YamlNode::Kind::null;
    if (is_null) nulls.emplace(entry.key, entry.value.mark);
    return is_null;
  });
  return nulls;
}

ConfigFile::ConfigFile(YamlNode& map, std::string path, Diagnostics& problems)
    : node_(&map),
      path_(std::move(path)),
      problems_(&problems),
      nulls_(take_nulls(map)),
      section_(map, path_, problems) {}

std::int64_t ConfigFile::size(std::string_view key, std::int64_t max) {
  if (const auto null = nulls_.find(key); null != nulls_.end()) {
    section_.error(null->second, fmt::format("{} is null, where a size is wanted", key));
    return 1;
  }
  section_.require(key);
  const auto value = section_.count(key, 1, max);
  return value ? value->value : 1;
}

std::int64_t ConfigFile::size_or(std::string_view key, std::int64_t otherwise) {
  const auto value = section_.count(key, 1, kLargestDimension);
  return value ? value->value : otherwise;
}

std::int64_t ConfigFile::count_or(std::string_view key, std::int64_t otherwise) {
  const auto value = section_.count(key, 0, kLargestDimension);
  return value ? value->value : otherwise;
}

bool ConfigFile::flag(std::string_view key, bool otherwise) {
  const auto value = section_.boolean(key);
  return value ? value->value : otherwise;
}

double ConfigFile::real_or(std::string_view key, double otherwise) {
  const YamlNode* node = section_.child(key);
  if (!node) return otherwise;
  constexpr double max = 1e9;
  return read_real(*node, section_.path_of(key), max, *problems_).value_or(otherwise);
}

std::string ConfigFile::word(std::string_view key) {
  const auto value = section_.text(key);
  return value ? value->value : "";
}

std::vector<std::string> ConfigFile::words(std::string_view key) {
  std::vector<std::string> list;
  const YamlNode* node = section_.child(key);
  if (!node || node->kind != YamlNode::Kind::sequence) return list;
  for (const YamlNode& item : node->items) list.push_back(item.text);
  return list;
}

std::vector<std::int64_t> ConfigFile::numbers(std::string_view key) {
  if (!section_.has(key) || section_.child(key)->kind != YamlNode::Kind::sequence) return {};
  return section_.counts(key, 0, kLargestDimension).value_or(std::vector<std::int64_t>{});
}

std::optional<ConfigFile> ConfigFile::map(std::string_view key) {
  const YamlNode* node = section_.child(key);
  if (!node || node->kind != YamlNode::Kind::map) return std::nullopt;
  const auto entry = std::find_if(node_->entries.begin(), node_->entries.end(),
                                  [&](const YamlNode::Entry& one) { return one.key == key; });
  return ConfigFile(entry->value, section_.path_of(key), *problems_);
}

std::string_view ConfigFile::either(std::string_view key, std::string_view old) const {
  return !has(key) && has(old) ? old : key;
}

void ConfigFile::pass_over(const std::vector<std::string_view>& keys) {
  for (const std::string_view key : keys) section_.child(key);
}

void ConfigFile::refuse(std::string_view key, std::string message, std::string help) {
  section_.error(section_.mark_of(key), std::move(message), std::move(help));
}

void ConfigFile::report_length(std::string_view key, std::int64_t has, std::int64_t wanted) {
  refuse(key, fmt::format("{} has {} entries, but the model {} blocks", key, has, wanted),
         "it has one for each block");
}

}  // namespace plumbline
