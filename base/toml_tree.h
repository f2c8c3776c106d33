// TOML as the same tree as YAML, with the place of each piece.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "base/yaml.h"

namespace plumbline {

/// Parses one TOML document. Its tables are maps, in the order of the file, and its arrays
/// sequences. Strings, numbers, true, false and dates are scalars. Errors: text that is not TOML,
/// nesting beyond 100 levels.
Result<YamlNode> parse_toml(const std::shared_ptr<const Source>& source);

/// read_file and parse_toml.
Result<YamlNode> read_toml(const std::string& path);

}  // namespace plumbline
