// The tables of a scenario file: every key with its values and its meaning.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "base/file_format.h"

namespace plumbline {

/// The formats of a scenario file and of those of its sections that are read by name.
const SectionFormat& scenario_format();
const SectionFormat& model_section_format();
const SectionFormat& level_format();
const SectionFormat& device_run_format();
const SectionFormat& pair_link_format();
const SectionFormat& plan_format();

}  // namespace plumbline
