// The keys of a file that we read, in tables: what the readers accept and the JSON Schemas tell.
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

/// The format of a section, made when it is asked for: a section may hold itself.
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
    list,     ///< Of `items`, `min` to `max` of them.
    section,  ///< A map of keys.
    range,    ///< The text range(from, to) or range(from, to, step).
    nothing,  ///< The key stands there without a value.
  };

  Type type = Type::text;
  std::int64_t min = 0;
  std::int64_t max = kLargestQuantity;
  double max_real = 0;
  std::vector<std::string> words;
  std::vector<ValueFormat> items;           ///< What an element of a list may be: any of these.
  SectionFormatFunction section = nullptr;  ///< Of a section.
};

/// A key with all that it may hold. Invariant: at least one value; `text` is a sentence.
struct KeyFormat {
  std::string_view name;
  std::vector<ValueFormat> values;  ///< Any of these; read by the first of a type.
  std::string_view text;            ///< What it says, for people.
  std::string_view otherwise = "";  ///< The value where it is absent, as written; "" = none such.
  bool required = false;
};

/// What goes for a section when `key` is `word`.
struct FormatCase {
  std::string_view key;
  std::string word;
  std::vector<std::string_view> keys;  ///< The only ones that may stand there.
  std::vector<std::string_view> required;
};

/// The keys of a map. What depends on several keys is told as far as a schema can tell it; the
/// reader knows the rest.
struct SectionFormat {
  std::string_view name;  ///< Of the section, one word: no two formats share it.
  std::string_view text;
  std::vector<KeyFormat> keys;
  /// What keys beside these may hold; empty = there may be none.
  std::vector<ValueFormat> other_keys = {};
  /// Exactly one of these stands there; empty = whatever.
  std::vector<std::string_view> exactly_one = {};
  /// All keys of at least one of these groups stand there; empty = whatever.
  std::vector<std::vector<std::string_view>> some_group = {};
  /// The first of each needs all that follow it.
  std::vector<std::vector<std::string_view>> needs = {};
  /// The first of each does not stand beside any that follows it.
  std::vector<std::vector<std::string_view>> excludes = {};
  std::vector<FormatCase> cases = {};
  /// Words that may be meant for a key of another section, and that key's path; null: none are.
  const std::vector<std::pair<std::string, std::string>>& (*elsewhere)() = nullptr;

  /// The key of this name, or nullptr.
  const KeyFormat* find(std::string_view key) const;
};

/// A key by its dotted path, for completion: "schedule.name".
struct KeyPath {
  std::string path;
  std::vector<std::string> words;  ///< What it may be, where that is a list of words.
  bool is_file = false;
};

/// All keys below `root` that hold more than a section, lists not looked into, in the order of the
/// table.
std::vector<KeyPath> key_paths(const SectionFormat& root);

/// The kinds of values, each as the tables write it.
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
ValueFormat list(std::vector<ValueFormat> items, std::int64_t min = 0,
                 std::int64_t max = kLargestQuantity);
ValueFormat section(SectionFormatFunction section);
ValueFormat range();
ValueFormat nothing();
}  // namespace format

}  // namespace plumbline
