// YAML as a tree with the place of each piece.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace plumbline {

/// A node of a YAML document. No type of the YAML library appears outside yaml.cpp.
struct YamlNode {
  enum class Kind { null, scalar, sequence, map };
  struct Entry;

  Kind kind = Kind::null;
  std::string text;  ///< For a scalar: as written, without quotes.
  Mark mark;
  std::vector<YamlNode> items;  ///< For a sequence.
  std::vector<Entry> entries;   ///< For a map, in the order of the file.
};

struct YamlNode::Entry {
  std::string key;
  Mark mark;  ///< The mark of the key.
  YamlNode value;
};

/// The entry of a map with this key; null where there is none.
YamlNode::Entry* entry_of(YamlNode& map, std::string_view key);
/// The value of this key in a map; null where there is none.
const YamlNode* value_of(const YamlNode& map, std::string_view key);

/// The largest file that is read as YAML.
inline constexpr std::size_t kLargestYaml = std::size_t{256} << 20U;

/// Parses one YAML document. Errors: repeated keys, tabs in indentation, control characters,
/// invalid UTF-8, more than one document, nesting beyond 100 levels, aliases that expand beyond
/// 100,000 nodes.
Result<YamlNode> parse_yaml(const std::shared_ptr<const Source>& source);

/// read_file and parse_yaml. Errors: those of both; an empty file.
Result<YamlNode> read_yaml(const std::string& path);

/// A change of a tree, from `a.b=value`. It is parsed once and may be applied to many trees.
struct YamlOverride {
  struct Key {
    std::string text;
    Mark mark;
    Mark before;  ///< The path before this key: the mark of a section that is created.
  };
  std::vector<Key> path;  ///< Never empty.
  YamlNode value;         ///< Null removes the key.
};

/// The key and the indices of `devices[0][1]`: devices, 0, 1. Any other text is returned unchanged.
std::vector<std::string> without_brackets(const std::string& key);

/// The path with dots only: `levels.1` for `levels[1]`.
std::string dotted(const std::string& path);

/// Reads "a.b=value"; the value is YAML. `levels[1]`, as in messages, is `levels.1`. Errors: no
/// '=', an empty path, a value that is not YAML.
Result<YamlOverride> parse_override(const std::string& argument);

/// Sets the value that `change` names in the tree under `root`. Missing maps on the way are
/// created, list elements are named by their index, and null removes the key. Errors: an index that
/// does not exist.
std::optional<Diagnostic> apply_override(YamlNode& root, const YamlOverride& change);

/// parse_override and apply_override. Errors: those of both.
std::optional<Diagnostics> apply_override(YamlNode& root, const std::string& argument);

}  // namespace plumbline
