// The values of a config.json, for those who write its sizes elsewhere.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/yaml.h"

namespace plumbline {

/// The values of a config.json by their keys. The tree outlives it.
class ConfigKeys {
 public:
  explicit ConfigKeys(const YamlNode& root) : root_(root) {}

  /// "" where it is absent.
  std::string word(std::string_view key) const;
  std::int64_t count(std::string_view key, std::int64_t otherwise) const;
  bool flag(std::string_view key, bool otherwise) const;

 private:
  const YamlNode& root_;
};

}  // namespace plumbline
