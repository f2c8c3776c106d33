// Keys of a scenario that do not stand beside one that an override sets.
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

/// Takes out of a scenario's tree what is written there and does not stand beside the key that
/// `change` has set: schedule.name beside schedule.file, the other kinds of a model, levels beside
/// another number of devices, the third of mini-batch, micro-batch and their number; and what needs
/// what is taken out. What other overrides have `set`, by `section.key` or the section alone,
/// stays. Returns a note, nothing where there was no such key.
std::optional<std::string> take_out_rivals(YamlNode& root, const YamlOverride& change,
                                           const std::vector<std::string>& set);

}  // namespace plumbline
