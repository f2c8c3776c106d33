// What a command line sets in the tree of a scenario.
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

/// What overrides have done to a scenario so far.
struct OverrideLog {
  std::vector<std::string> set;  ///< Keys, `schedule.file`, and sections that were set as a whole.
  std::vector<std::string> notes;  ///< What they have replaced besides what they name.
};

/// apply_override for the tree of a scenario: a key of `cluster.device` stands beside the preset
/// that was there by its name alone, and what is written in the scenario but does not stand beside
/// the new key (schedule.name beside schedule.file) is taken out, with what needs it, and a note.
/// Errors: as there.
std::optional<Diagnostic> override_scenario(YamlNode& root, const YamlOverride& change,
                                            OverrideLog& log);

/// The same for each `key=value`, in their order. Errors: as there, and an override that sets what
/// an earlier one sets, or replaces all of that.
Diagnostics override_by_arguments(YamlNode& root, const std::vector<std::string>& arguments,
                                  OverrideLog& log);

}  // namespace plumbline
