// How the SMs of one GPU are shared out among devices.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>

#include "base/diagnostic.h"

namespace plumbline {

/// What a GPU says of its SMs.
struct SmSupply {
  std::uint32_t sms = 0;
  std::uint32_t min = 1;        ///< A group has so many at least.
  std::uint32_t alignment = 1;  ///< And a multiple of so many.
};

/// Equal groups, as large as they can be.
struct SmSplit {
  std::uint32_t groups = 0;
  std::uint32_t sms = 0;   ///< Of each group.
  std::uint32_t left = 0;  ///< SMs in no group.

  bool operator==(const SmSplit&) const = default;
};

/// So many groups the driver makes of a GPU, of so many SMs each: SMs of a group stand together, so
/// they may be fewer than the number of SMs allows.
using SmRoom = std::function<std::uint32_t(std::uint32_t sms)>;

/// H100 (132 SMs, 8 at least, multiples of 8): 2 x 64, 4 x 32, 8 x 16 or 16 x 8 SMs where the
/// driver has room for them, 4 left. Many of these GPUs have room for 15 groups of 8 only: then 2 x
/// 56, 4 x 24, 8 x 8. Requires: groups > 0. Errors: the GPU is too small for so many groups, or the
/// driver has no room for them; says for how many.
Result<SmSplit> split_sms(const SmSupply& supply, std::uint32_t groups, const SmRoom& room);

}  // namespace plumbline
