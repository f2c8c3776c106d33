// Building and walking the tables of keys.
//
// SPDX-License-Identifier: MIT
#include "base/file_format.h"

#include <algorithm>

namespace plumbline {
namespace {

void add_paths(const SectionFormat& section, const std::string& prefix,
               std::vector<KeyPath>& paths) {
  for (const KeyFormat& key : section.keys) {
    KeyPath path{prefix + std::string(key.name), {}, false};
    bool is_leaf = false;
    for (const ValueFormat& value : key.values) {
      if (value.type == ValueFormat::Type::section || value.type == ValueFormat::Type::nothing)
        continue;
      is_leaf = true;
      path.words.insert(path.words.end(), value.words.begin(), value.words.end());
      if (value.type == ValueFormat::Type::boolean) path.words = {"true", "false"};
      path.is_file = path.is_file || value.type == ValueFormat::Type::file;
    }
    const std::string below = path.path + '.';
    if (is_leaf) paths.push_back(std::move(path));
    for (const ValueFormat& value : key.values) {
      if (value.type == ValueFormat::Type::section) add_paths(value.section(), below, paths);
    }
  }
}

ValueFormat of(ValueFormat::Type type) {
  ValueFormat value;
  value.type = type;
  return value;
}

}  // namespace

const KeyFormat* SectionFormat::find(std::string_view key) const {
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const KeyFormat& k) { return k.name == key; });
  return found == keys.end() ? nullptr : &*found;
}

std::vector<KeyPath> key_paths(const SectionFormat& root) {
  std::vector<KeyPath> paths;
  add_paths(root, "", paths);
  return paths;
}

namespace format {

ValueFormat text() { return of(ValueFormat::Type::text); }
ValueFormat file() { return of(ValueFormat::Type::file); }

ValueFormat words(std::vector<std::string> words) {
  ValueFormat value = of(ValueFormat::Type::word);
  value.words = std::move(words);
  return value;
}

ValueFormat word(std::string_view word) { return words({std::string(word)}); }
ValueFormat boolean() { return of(ValueFormat::Type::boolean); }

ValueFormat count(std::int64_t min, std::int64_t max) {
  ValueFormat value = of(ValueFormat::Type::count);
  value.min = min;
  value.max = max;
  return value;
}

ValueFormat real(double max) {
  ValueFormat value = of(ValueFormat::Type::real);
  value.max_real = max;
  return value;
}

ValueFormat duration() { return of(ValueFormat::Type::duration); }
ValueFormat bytes() { return of(ValueFormat::Type::bytes); }
ValueFormat bandwidth() { return of(ValueFormat::Type::bandwidth); }
ValueFormat flops() { return of(ValueFormat::Type::flops); }
ValueFormat flops_per_second() { return of(ValueFormat::Type::flops_per_second); }
ValueFormat tokens() { return of(ValueFormat::Type::tokens); }
ValueFormat price() { return of(ValueFormat::Type::price); }
ValueFormat power() { return of(ValueFormat::Type::power); }
ValueFormat long_time() { return of(ValueFormat::Type::long_time); }

ValueFormat list(std::vector<ValueFormat> items, std::int64_t min, std::int64_t max) {
  ValueFormat value = of(ValueFormat::Type::list);
  value.items = std::move(items);
  value.min = min;
  value.max = max;
  return value;
}

ValueFormat section(SectionFormatFunction section) {
  ValueFormat value = of(ValueFormat::Type::section);
  value.section = section;
  return value;
}

ValueFormat range() { return of(ValueFormat::Type::range); }
ValueFormat nothing() { return of(ValueFormat::Type::nothing); }

}  // namespace format
}  // namespace plumbline
