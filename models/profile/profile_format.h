// The tables of a profile file.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "base/file_format.h"

namespace plumbline {

/// A profile file, and the sections in it.
const SectionFormat& profile_format();
const SectionFormat& provenance_format();
const SectionFormat& measurement_format();
const SectionFormat& block_format();
const SectionFormat& busy_transfers_format();
const SectionFormat& measured_link_format();
const SectionFormat& slowdown_format();
const SectionFormat& in_flight_format();
const SectionFormat& algorithms_format();

}  // namespace plumbline
