// The bytes of a stage's parameters that are reduced at once, and each member's share of them.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include "schedules/stages/stage_costs.h"

namespace plumbline {

/// Bytes begin..end-1 of a stage's parameters, or of their gradients.
struct ByteRange {
  std::size_t begin = 0;
  std::size_t end = 0;

  std::size_t size() const { return end - begin; }
};

/// The parts of a stage's `parameters` bytes that are reduced one after the other, the last layers
/// first: one part per bucket that has gradients, or else all at once. `layers` says where the
/// parameters of each layer begin. If it is empty, the bytes are a token and are cut in proportion.
std::vector<ByteRange> bucket_ranges(std::size_t parameters, const std::vector<std::size_t>& layers,
                                     const std::vector<Bucket>& buckets);

/// The share of a range that one member adds up: whole lines or, where these are few, whole
/// numbers, so that each member has some. May be empty.
ByteRange share_of(const ByteRange& range, std::size_t member, std::size_t members);

}  // namespace plumbline
