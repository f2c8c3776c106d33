// The angles of rotary positions, as tables for the backends.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

namespace plumbline {

/// The cosines, then the sines, of one angle for each number of half a head: [tokens, 2, size / 2]
/// (AttentionBlock::rotary). Computed in double precision. Requires: an even size >= 2.
std::vector<float> rotary_angles(std::int64_t tokens, std::int64_t size, double base);

}  // namespace plumbline
