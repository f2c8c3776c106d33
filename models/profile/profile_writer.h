// Writing native profiles (`kind: profile`) for people to read.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/profile/profile.h"

namespace plumbline {

/// Lines that say where numbers come from; the reader passes over them. Each is one line of text
/// that stands behind "# ".
struct ProfileComments {
  std::vector<std::string> head;                                ///< Above everything.
  std::map<std::string, std::vector<std::string>> above_layer;  ///< By the layer's name.
};

/// The model as a profile of version 1: a layer a line where it fits, no digit of a quantity lost.
/// parse_profile gives an equal model back. What the reader takes as given where it is absent is
/// left out: sizes of 0, the edges of a chain, a backward that is the sum of its parts, the times
/// of a layer that was given none. Estimated times are not written: the work that they come from
/// is. Two things do not come back as they were: a byte that is no UTF-8 (written as U+FFFD), and
/// the end of a value of the provenance beyond 10,000 bytes, which is more than the reader takes.
/// Requires: the invariants of Profile; 1 to kMaxLayers layers with names that differ; no other
/// text above 10,000 bytes; times and sizes in [0, kLargestQuantity]; every batch, samples and
/// bandwidth >= 1; every list of factors filled, each factor in [0, 1000]; FLOPs in [0,
/// kMaxFlops].
std::string profile_yaml(const Model& model, const ProfileComments& comments = {});

}  // namespace plumbline
