// Writing native profiles (`kind: profile`) for people to read.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/profile/profile.h"

namespace plumbline {

/// Comment lines on the origin of numbers; the reader skips them. Each is one line of text, written
/// behind "# ".
struct ProfileComments {
  std::vector<std::string> head;                                ///< Above all lines.
  std::map<std::string, std::vector<std::string>> above_layer;  ///< By the layer's name.
};

/// The model as a profile of version 1: one line per layer where it fits, without losing a digit of
/// a quantity. parse_profile gives an equal model back. Values that the reader assumes when absent
/// are left out: sizes of 0, the edges of a chain, a backward that is the sum of its parts, the
/// times of a layer that was given none. Estimated times are not written, but the work that they
/// come from. Two things do not come back unchanged: a byte that is not UTF-8 (written as U+FFFD),
/// and the end of a provenance value beyond 10,000 bytes, the reader's limit. Requires: the
/// invariants of Profile; 1 to kMaxLayers layers with different names; no other text above 10,000
/// bytes; ops in the profile's dtype, as OpTexts has them; times and sizes in [0,
/// kLargestQuantity]; every batch, samples and bandwidth >= 1; every list of factors filled, each
/// factor in [0, 1000]; FLOPs in [0, kMaxFlops].
std::string profile_yaml(const Model& model, const ProfileComments& comments = {});

}  // namespace plumbline
