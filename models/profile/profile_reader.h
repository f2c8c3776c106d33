// Reading native profiles (`kind: profile`) from YAML.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "base/diagnostic.h"
#include "base/section_reader.h"
#include "models/profile/profile.h"

namespace plumbline {

/// Reads `group` of `section`: devices and forward_flops.
DeviceGroup read_group(SectionReader& section, Diagnostics& problems);

/// Reads `dtype` of `section`: one of kNumberFormats.
std::optional<NumberFormat> read_dtype(SectionReader& section);

/// Reads per_op, hand_over, per_iteration, add_up and stash from `section`.
Overheads read_overheads(SectionReader& section);

/// Reads a profile file. Errors: all text that is not in the format, and all entries that do not
/// fit together.
Result<Model> read_profile(const std::string& path);

/// The same for a document in memory.
Result<Model> parse_profile(const std::shared_ptr<const Source>& source);

}  // namespace plumbline
