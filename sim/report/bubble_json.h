// The JSON of a bubble's terms; for files that write JSON only.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json.hpp>

#include "sim/prediction/bubble_terms.h"

namespace plumbline {

/// "of", "base", "terms" that add up to "bubble_fraction", and the slowest stage.
nlohmann::ordered_json bubble_json(const BubbleTerms& terms);

}  // namespace plumbline
