// Writing native profiles (`kind: profile`) for people to read.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "models/profile.h"

namespace plumbline {

/// The model as a profile of version 1: a layer a line where it fits, no digit of a quantity lost.
/// parse_profile gives an equal model back. What the reader takes as given where it is absent is
/// left out: sizes of 0, the edges of a chain, a backward that is the sum of its parts.
/// Two things do not come back as they were: a byte that is no UTF-8 (written as U+FFFD), and the
/// end of a value of the provenance beyond 10,000 bytes, which is more than the reader takes.
/// Requires: the invariants of Profile; 1 to kMostLayers layers with names that differ; no other
/// text above 10,000 bytes; times and sizes in [0, kLargestQuantity]; every batch, samples and
/// bandwidth >= 1; every list of slowdowns filled, each factor in [0, 1000].
std::string profile_yaml(const Model& model);

}  // namespace plumbline
