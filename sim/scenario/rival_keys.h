// Rival keys: keys of a scenario that exclude a key which an override sets.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"

namespace plumbline {

struct YamlNode;
struct YamlOverride;

/// Removes the keys from a scenario's tree that contradict the key that `change` has set. Examples:
/// schedule.name beside schedule.file, the other kinds of a model, levels beside another number of
/// devices, the third of mini-batch, micro-batch and their number. Keys that need a removed key are
/// removed too. Keys that other overrides have `set`, by `section.key` or the section alone, stay.
/// Returns a note; nothing if there was no such key.
std::optional<std::string> take_out_rivals(YamlNode& root, const YamlOverride& change,
                                           const std::vector<std::string>& set);

}  // namespace plumbline
