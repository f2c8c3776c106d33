// What a command line sets in the tree of a scenario. SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/diagnostic.h"
#include "models/yaml.h"

namespace plumbline {

/// apply_override for the tree of a scenario: a key of `cluster.device` stands beside the preset
/// that was there by its name alone. Errors: as there.
std::optional<Diagnostics> override_scenario(YamlNode& root, const YamlOverride& change);

/// The same for each `key=value`, in their order. Errors: as there, and an override that sets what
/// an earlier one sets, or replaces all of that.
Diagnostics override_by_arguments(YamlNode& root, const std::vector<std::string>& arguments);

}  // namespace plumbline
