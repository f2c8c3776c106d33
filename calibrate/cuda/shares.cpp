// Ranges that begin where copies and kernels like to. SPDX-License-Identifier: MIT
#include "calibrate/cuda/shares.h"

#include <algorithm>

namespace plumbline {
namespace {

constexpr std::size_t kLine = 16;

}  // namespace

std::vector<ByteRange> bucket_ranges(std::size_t parameters, const std::vector<Bucket>& buckets) {
  std::vector<double> ends;
  double sum = 0;
  for (const Bucket& bucket : buckets) {
    if (bucket.reduced.count == 0) continue;
    ends.push_back(sum += static_cast<double>(bucket.reduced.count));
  }
  std::vector<ByteRange> ranges;
  for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
    const auto end =
        static_cast<std::size_t>(static_cast<double>(parameters) * (ends[i] / sum)) / kLine * kLine;
    ranges.push_back({ranges.empty() ? 0 : ranges.back().end, end});
  }
  ranges.push_back({ranges.empty() ? 0 : ranges.back().end, parameters});
  return ranges;
}

ByteRange share_of(const ByteRange& range, std::size_t member, std::size_t members) {
  const std::size_t line = range.size() >= kLine * members ? kLine : sizeof(float);
  const std::size_t share = (range.size() + members * line - 1) / (members * line) * line;
  const auto begin_of = [&](std::size_t i) { return std::min(range.end, range.begin + i * share); };
  return {begin_of(member), begin_of(member + 1)};
}

}  // namespace plumbline
