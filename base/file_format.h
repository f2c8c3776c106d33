// The keys of our files in tables, which the readers and the JSON Schemas both use.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace plumbline {

struct SectionFormat;

/// A function that makes the format of a section. A section may contain itself.
using SectionFormatFunction = const SectionFormat& (*)();

/// One kind of value that a key may have.
struct ValueFormat {
  enum class Type {
    text,
    file,     ///< A path, relative to the folder of the text that names it.
    word,     ///< One of `words`.
    boolean,  ///< true or false.
    count,    ///< A whole number in [least, most].
    real,     ///< A number in [0, max_real].
    duration,
    bytes,
    bandwidth,
    flops,
    flops_per_second,
    tokens,     ///< A number of tokens: 15T.
    price,      ///< What an hour costs: 2.5 USD/h.
    power,      ///< 700 W.
    long_time,  ///< 50000 h.
    list,       ///< A list of `items`, with `min` to `max` elements.
    section,    ///< A map of keys.
    range,      ///< The text range(from, to) or range(from, to, step).
    nothing,    ///< The key stands there without a value.
  };

  Type type = Type::text;
  std::int64_t min = 0;
  std::int64_t max = kLargestQuantity;
  double max_real = 0;
  std::vector<std::string> words;
  std::vector<ValueFormat> items;           ///< The types of a list's elements; any of these.
  SectionFormatFunction section = nullptr;  ///< For a section only.
};

/// A key with all values that it may hold. Invariants: at least one value; `text` is a sentence.
struct KeyFormat {
  std::string_view name;
  std::vector<ValueFormat> values;  ///< Any of these; the first of a type reads it.
  std::string_view text;            ///< The meaning of the key, for people.
  std::string_view otherwise = "";  ///< The default value, as written; "" = none.
  bool required = false;
};

/// The rules for a section when `key` is `word`.
struct FormatCase {
  std::string_view key;
  std::string word;
  std::vector<std::string_view> keys;  ///< The only keys that may be there.
  std::vector<std::string_view> required;
};

/// The keys of a map. Rules about several keys are here as far as a schema can express them; the
/// reader checks the rest.
struct SectionFormat {
  std::string_view name;  ///< The section's name, one word; no two formats share it.
  std::string_view text;
  std::vector<KeyFormat> keys;
  /// The values of any other keys; empty = other keys are errors.
  std::vector<ValueFormat> other_keys = {};
  /// Exactly one of these keys must be there; empty = no rule.
  std::vector<std::string_view> exactly_one = {};
  /// All keys of at least one of these groups must be there; empty = no rule.
  std::vector<std::vector<std::string_view>> some_group = {};
  /// In each list, the first key needs all that follow it.
  std::vector<std::vector<std::string_view>> needs = {};
  /// In each list, the first key excludes all that follow it.
  std::vector<std::vector<std::string_view>> excludes = {};
  std::vector<FormatCase> cases = {};
  /// Words that may mean a key of another section, and that key's path; null = no such words.
  const std::vector<std::pair<std::string, std::string>>& (*elsewhere)() = nullptr;

  /// The key of this name, or nullptr.
  const KeyFormat* find(std::string_view key) const;
};

/// A key by its dotted path, for completion: "schedule.name".
struct KeyPath {
  std::string path;
  std::vector<std::string> words;  ///< The words that it may hold, where they are listed.
  bool is_file = false;
};

/// All keys below `root` that hold more than a section, in the order of the table. Keys within
/// lists are not included.
std::vector<KeyPath> key_paths(const SectionFormat& root);

/// The kinds of values, as the tables write them.
namespace format {
ValueFormat text();
ValueFormat file();
ValueFormat words(std::vector<std::string> words);
ValueFormat word(std::string_view word);
ValueFormat boolean();
ValueFormat count(std::int64_t min, std::int64_t max = kLargestQuantity);
ValueFormat real(double max);
ValueFormat duration();
ValueFormat bytes();
ValueFormat bandwidth();
ValueFormat flops();
ValueFormat flops_per_second();
ValueFormat tokens();
ValueFormat price();
ValueFormat power();
ValueFormat long_time();
ValueFormat list(std::vector<ValueFormat> items, std::int64_t min = 0,
                 std::int64_t max = kLargestQuantity);
ValueFormat section(SectionFormatFunction section);
ValueFormat range();
ValueFormat nothing();
}  // namespace format

}  // namespace plumbline
