// Overrides: the values that a command line sets in the tree of a scenario.
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

/// The effects of overrides on a scenario so far.
struct OverrideLog {
  std::vector<std::string> set;    ///< The keys that were set, such as `schedule.file`, and the
                                   ///< sections that were set as a whole.
  std::vector<std::string> notes;  ///< Notes on other keys that they replaced.
};

/// apply_override for the tree of a scenario. A key of `cluster.device` is added to a preset that
/// was given by its name alone. Written keys that contradict the new key (schedule.name and
/// schedule.file) are removed, together with the keys that need them, and a note is added. Errors:
/// as there.
std::optional<Diagnostic> override_scenario(YamlNode& root, const YamlOverride& change,
                                            OverrideLog& log);

/// The same for each `key=value`, in order. Errors: as there; an override that sets the same key as
/// an earlier one, or replaces that key's whole section.
Diagnostics override_by_arguments(YamlNode& root, const std::vector<std::string>& arguments,
                                  OverrideLog& log);

}  // namespace plumbline
