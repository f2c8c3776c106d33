// Look-ups in a map.
//
// SPDX-License-Identifier: MIT
#include "sim/launch/config_keys.h"

#include "base/quantity.h"

namespace plumbline {

std::string ConfigKeys::word(std::string_view key) const {
  for (const YamlNode::Entry& entry : root_.entries) {
    if (entry.key == key && entry.value.kind == YamlNode::Kind::scalar) return entry.value.text;
  }
  return "";
}

std::int64_t ConfigKeys::count(std::string_view key, std::int64_t otherwise) const {
  return parse_count(word(key)).value.value_or(otherwise);
}

bool ConfigKeys::flag(std::string_view key, bool otherwise) const {
  const std::string text = word(key);
  return text.empty() ? otherwise : text == "true";
}

}  // namespace plumbline
