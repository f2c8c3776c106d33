// JSON as the same tree as YAML, with the place of each piece.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "base/yaml.h"

namespace plumbline {

/// Parses one JSON document. Infinity, -Infinity and NaN are numbers, as in Python. Numbers keep
/// their text as written; strings, true and false are scalars too. Errors: text that is not JSON, a
/// repeated key, nesting beyond 100 levels, an empty text.
Result<YamlNode> parse_json(const std::shared_ptr<const Source>& source);

/// read_file and parse_json.
Result<YamlNode> read_json(const std::string& path);

}  // namespace plumbline
