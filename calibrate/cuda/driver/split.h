// The division of one GPU's SMs among devices.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>

#include "base/diagnostic.h"

namespace plumbline {

/// A GPU's SMs and its limits on groups of them.
struct SmSupply {
  std::uint32_t sms = 0;
  std::uint32_t min = 1;        ///< The fewest SMs of a group.
  std::uint32_t alignment = 1;  ///< The SMs of a group are a multiple of this.
};

/// Equal groups, as large as they can be.
struct SmSplit {
  std::uint32_t groups = 0;
  std::uint32_t sms = 0;   ///< SMs of each group.
  std::uint32_t left = 0;  ///< SMs in no group.

  bool operator==(const SmSplit&) const = default;
};

/// The number of groups of `sms` SMs that the driver can make of a GPU. SMs of a group stand
/// together, so there may be fewer groups than the number of SMs allows.
using SmRoom = std::function<std::uint32_t(std::uint32_t sms)>;

/// Splits the SMs into equal groups, the largest that leave some SMs for copies; where none do, the
/// largest of all. An H100 (132 SMs, groups of at least 8, multiples of 8) gives
/// 2 x 64, 4 x 32, 8 x 16 or 16 x 8 SMs where the driver has room for them, and 4 are left. Many of
/// these GPUs have room for only 15 groups of 8: then 2 x 56, 4 x 24, 8 x 8. Requires: groups > 0.
/// Errors: the GPU is too small for so many groups, or the driver has no room for them; the message
/// says how many would fit.
Result<SmSplit> split_sms(const SmSupply& supply, std::uint32_t groups, const SmRoom& room);

}  // namespace plumbline
