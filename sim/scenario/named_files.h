// The files that a scenario names.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

namespace plumbline {

struct YamlNode;

struct NamedFile {
  std::string key;   ///< Dotted: model.profile.
  std::string path;  ///< The path to open.
};

/// The files that a value of this dotted key names: one for a text, several for a list (an axis) or
/// a section. None if the key names no file.
std::vector<NamedFile> named_files(const std::string& key, const YamlNode& value);

/// The files that a scenario's sections name, including those on its axes.
std::vector<NamedFile> named_files(const YamlNode& scenario);

}  // namespace plumbline
