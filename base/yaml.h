// YAML as a tree that remembers where each piece stands.
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
  std::string text;  ///< Of a scalar, as written and without quotes.
  Mark mark;
  std::vector<YamlNode> items;  ///< Of a sequence.
  std::vector<Entry> entries;   ///< Of a map, in the order of the file.
};

struct YamlNode::Entry {
  std::string key;
  Mark mark;  ///< Of the key.
  YamlNode value;
};

/// The entry of a map with this key; null where there is none.
YamlNode::Entry* entry_of(YamlNode& map, std::string_view key);

/// The largest file that is read as YAML.
inline constexpr std::size_t kLargestYaml = std::size_t{256} << 20U;

/// Parses one YAML document. Repeated keys, tabs in indentation, control characters, invalid UTF-8,
/// more than one document, nesting beyond 100 levels and aliases that expand beyond 100,000 nodes
/// are errors.
Result<YamlNode> parse_yaml(const std::shared_ptr<const Source>& source);

/// read_file and parse_yaml. Errors: of both; an empty file.
Result<YamlNode> read_yaml(const std::string& path);

/// A change of a tree: what `a.b=value` says. Read once, it may be put into many trees.
struct YamlOverride {
  struct Key {
    std::string text;
    Mark mark;
    Mark before;  ///< Of the path up to this key: where a section that is made on the way stands.
  };
  std::vector<Key> path;  ///< Never empty.
  YamlNode value;         ///< Null takes the key out.
};

/// The key and the indices of `devices[0][1]`: devices, 0, 1. Any other text alone.
std::vector<std::string> without_brackets(const std::string& key);

/// The path with dots alone: `levels.1` for `levels[1]`.
std::string dotted(const std::string& path);

/// Reads "a.b=value"; the value is YAML. Errors: no '=', an empty path, a value that is not YAML.
/// `levels[1]`, as messages write it, is `levels.1`.
Result<YamlOverride> parse_override(const std::string& argument);

/// Sets what `change` names in the tree under `root`: maps on the way are made, list elements are
/// named by their index, and null takes the key out. Errors: an index that is not there.
std::optional<Diagnostic> apply_override(YamlNode& root, const YamlOverride& change);

/// parse_override and apply_override. Errors: of both.
std::optional<Diagnostics> apply_override(YamlNode& root, const std::string& argument);

}  // namespace plumbline
