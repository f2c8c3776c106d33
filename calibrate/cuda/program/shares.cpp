// Ranges with good alignment for copies and kernels.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/program/shares.h"

#include <algorithm>

namespace plumbline {
namespace {

constexpr std::size_t kLine = 16;

}  // namespace

namespace {

/// Ranges in proportion to the buckets, the last bytes first.
std::vector<ByteRange> proportional_ranges(std::size_t parameters,
                                           const std::vector<Bucket>& buckets) {
  double all = 0;
  for (const Bucket& bucket : buckets) all += static_cast<double>(bucket.gradients.count);
  std::vector<ByteRange> ranges;
  double sum = 0;
  for (const Bucket& bucket : buckets) {
    if (bucket.gradients.count == 0) continue;
    sum += static_cast<double>(bucket.gradients.count);
    const std::size_t end = ranges.empty() ? parameters : ranges.back().begin;
    const auto begin = static_cast<std::size_t>(static_cast<double>(parameters) * (1 - sum / all));
    ranges.push_back({sum == all ? 0 : std::min(end, begin / kLine * kLine), end});
  }
  return ranges;
}

}  // namespace

std::vector<ByteRange> bucket_ranges(std::size_t parameters, const std::vector<std::size_t>& layers,
                                     const std::vector<Bucket>& buckets) {
  std::vector<ByteRange> ranges;
  if (layers.empty()) {
    ranges = proportional_ranges(parameters, buckets);
  } else {
    std::size_t end = parameters;
    std::size_t left = layers.size();
    for (const Bucket& bucket : buckets) {
      left -= bucket.layers;
      const std::size_t begin = left == 0 ? 0 : layers[left];
      if (bucket.gradients.count > 0) ranges.push_back({begin, end});
      end = begin;
    }
  }
  if (ranges.empty()) ranges.push_back({0, parameters});
  return ranges;
}

ByteRange share_of(const ByteRange& range, std::size_t member, std::size_t members) {
  const std::size_t line = range.size() >= kLine * members ? kLine : sizeof(float);
  const std::size_t share = (range.size() + members * line - 1) / (members * line) * line;
  const auto begin_of = [&](std::size_t i) { return std::min(range.end, range.begin + i * share); };
  return {begin_of(member), begin_of(member + 1)};
}

}  // namespace plumbline
