// How the SMs of one GPU are shared out among devices. SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "models/diagnostic.h"

namespace plumbline {

/// What a GPU says of its SMs.
struct SmSupply {
  std::uint32_t sms = 0;
  std::uint32_t least = 1;      ///< A group has so many at least.
  std::uint32_t alignment = 1;  ///< And a multiple of so many.
};

/// Equal groups, as large as they can be.
struct SmSplit {
  std::uint32_t groups = 0;
  std::uint32_t sms = 0;   ///< Of each group.
  std::uint32_t left = 0;  ///< SMs in no group.

  bool operator==(const SmSplit&) const = default;
};

/// H100 (132 SMs, 8 at least, multiples of 8): 2 x 64, 4 x 32, 8 x 16 or 16 x 8 SMs, 4 left.
/// Requires: groups > 0. Errors: the GPU is too small for so many groups; says how many it has room
/// for.
Result<SmSplit> split_sms(const SmSupply& supply, std::uint32_t groups);

}  // namespace plumbline
