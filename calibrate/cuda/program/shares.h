// Which bytes of a stage's parameters are reduced at once, and which member adds up which.
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

/// The parts of a stage's `parameters` bytes that are reduced one after the other: of those buckets
/// that have any gradients, the last layers first, or else all at once. `layers` says where the
/// parameters of each layer begin; where it does not, a stage is a token that is cut in proportion.
std::vector<ByteRange> bucket_ranges(std::size_t parameters, const std::vector<std::size_t>& layers,
                                     const std::vector<Bucket>& buckets);

/// What one of the members adds up of a range: whole lines, or where these are few whole numbers,
/// so that each has one. May be empty.
ByteRange share_of(const ByteRange& range, std::size_t member, std::size_t members);

}  // namespace plumbline
