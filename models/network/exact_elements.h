// The number of elements of a network's tensor, where a 64-bit product may overflow.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "base/saturating_count.h"
#include "models/network/network.h"

namespace plumbline {

/// The product of the extents.
inline SaturatingCount exact_elements(const Shape& shape) {
  SaturatingCount product = 1;
  for (const std::int64_t extent : shape.extents) product *= extent;
  return product;
}

}  // namespace plumbline
