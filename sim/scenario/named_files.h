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
  std::string path;  ///< As it is to be opened.
};

/// What a value of this dotted key names: one file for a text, several for a list (an axis) or for
/// a section, none where the key names no file.
std::vector<NamedFile> named_files(const std::string& key, const YamlNode& value);

/// What a scenario's sections name, those of its axes among them.
std::vector<NamedFile> named_files(const YamlNode& scenario);

}  // namespace plumbline
