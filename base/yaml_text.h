// Writing YAML for people to read: texts, keys, and flow collections that are broken into lines.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plumbline {

/// The text without quotes where every reader of YAML accepts it so, else in double quotes. A byte
/// that is not UTF-8 becomes U+FFFD.
std::string yaml_scalar(std::string_view text);

/// The same for the longest prefix of `text` that our reader accepts (kLongestText).
std::string clipped_scalar(std::string_view text);

/// A key of a block map, indented by two spaces. A key too long for one line is marked with "?".
std::string yaml_block_key(const std::string& key);

/// The pieces of a text. A line may break between two of them.
using Pieces = std::vector<std::string>;

/// "{key: value, ...}".
class FlowMap {
 public:
  void add(std::string_view key, std::string_view value);
  void add(std::string_view key, Pieces values);
  /// Requires: something was added.
  Pieces pieces() &&;

 private:
  Pieces pieces_;
};

/// "[item, ...]".
Pieces flow_list(Pieces items);
/// The same of items in pieces, each with at least one.
Pieces flow_list_of(std::vector<Pieces> items);

/// Adds `lead` and the pieces to `text`. Pieces that do not fit go to the next lines, which are
/// indented further than the lead.
void add_lines(std::string& text, std::string_view lead, const Pieces& pieces);

}  // namespace plumbline
