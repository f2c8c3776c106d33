// Writing YAML for people to read: texts, keys, and flow collections that are broken into lines.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plumbline {

/// The text as it stands where every reader of YAML takes it so, else in double quotes. A byte that
/// is no UTF-8 becomes U+FFFD.
std::string yaml_scalar(std::string_view text);

/// The same of the front of `text` that, as it is written, our reader takes (kLongestText).
std::string clipped_scalar(std::string_view text);

/// A key of a block map, two spaces in; one that is too long for its line is told as such.
std::string yaml_block_key(const std::string& key);

/// Words of a text; a line may end between two of them.
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

/// Adds `lead` and the pieces to `text`; what does not fit goes on below, further in than the lead.
void add_lines(std::string& text, std::string_view lead, const Pieces& pieces);

}  // namespace plumbline
