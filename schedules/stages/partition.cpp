// Even and balanced cuts.
//
// SPDX-License-Identifier: MIT
#include "schedules/stages/partition.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/bug.h"

namespace plumbline {
namespace {

__extension__ using Wide = __int128;

/// Whether `stages` contiguous parts suffice for no part to exceed `limit`.
bool fits(const std::vector<Duration>& times, std::uint32_t stages, std::int64_t limit) {
  std::uint32_t used = 1;
  std::int64_t part = 0;
  for (const Duration time : times) {
    if (time.count() > limit) return false;
    if (part + time.count() > limit) {
      ++used;
      part = 0;
    }
    part += time.count();
  }
  return used <= stages;
}

std::int64_t min_maximum(const std::vector<Duration>& times, std::uint32_t stages) {
  std::int64_t low = 0;
  std::int64_t high = std::accumulate(times.begin(), times.end(), Duration{}).count();
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (fits(times, stages, middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

/// The cost of a cut: first the time by which stages exceed the limit, then the sum of squares.
/// Both are convex in the stage's time, so their lexicographic sum obeys the quadrangle inequality.
/// Then the best cut moves monotonically with the start, which allows divide and conquer.
struct CutCost {
  Wide excess = 0;
  Wide squares = 0;

  friend bool operator<(const CutCost& a, const CutCost& b) {
    return a.excess != b.excess ? a.excess < b.excess : a.squares < b.squares;
  }
  friend bool operator==(const CutCost&, const CutCost&) = default;
  friend CutCost operator+(const CutCost& a, const CutCost& b) {
    return {a.excess + b.excess, a.squares + b.squares};
  }
};

class Balancer {
 public:
  Balancer(const std::vector<Duration>& times, std::uint32_t stages)
      : layers_(static_cast<std::uint32_t>(times.size())),
        stages_(stages),
        limit_(min_maximum(times, stages)),
        before_(times.size() + 1, 0) {
    for (std::size_t i = 0; i < times.size(); ++i) before_[i + 1] = before_[i] + times[i].count();
  }

  std::vector<std::uint32_t> counts() {
    // best_[k][i]: layers i.. cut into k + 1 stages. Solved for one stage, then two, ...
    best_.assign(stages_, std::vector<CutCost>(layers_ + 1));
    for (std::uint32_t i = 0; i < layers_; ++i) best_[0][i] = cost(i, layers_);
    for (std::uint32_t k = 1; k < stages_; ++k) solve(k, 0, layers_ - k - 1, 1, layers_ - k);
    // Read back from the front: the longest first stage that reaches the optimum, then the same for
    // the rest.
    std::vector<std::uint32_t> found;
    std::uint32_t start = 0;
    for (std::uint32_t k = stages_ - 1; k > 0; --k) {
      std::uint32_t end = layers_ - k;
      while (!(cost(start, end) + best_[k - 1][end] == best_[k][start])) --end;
      found.push_back(end - start);
      start = end;
    }
    found.push_back(layers_ - start);
    return found;
  }

 private:
  CutCost cost(std::uint32_t first, std::uint32_t end) const {
    const Wide time = before_[end] - before_[first];
    return {std::max<Wide>(0, time - limit_), time * time};
  }

  /// best_[k][start] for start in [low, high], whose first stage ends in [end_low, end_high].
  void solve(std::uint32_t k, std::uint32_t low, std::uint32_t high, std::uint32_t end_low,
             std::uint32_t end_high) {
    const std::uint32_t start = low + (high - low) / 2;
    std::uint32_t best_end = 0;
    for (std::uint32_t end = std::max(end_low, start + 1); end <= end_high; ++end) {
      const CutCost total = cost(start, end) + best_[k - 1][end];
      if (best_end == 0 || total < best_[k][start]) {
        best_[k][start] = total;
        best_end = end;
      }
    }
    if (start > low) solve(k, low, start - 1, end_low, best_end);
    if (start < high) solve(k, start + 1, high, best_end, end_high);
  }

  std::uint32_t layers_;
  std::uint32_t stages_;
  std::int64_t limit_;
  std::vector<std::int64_t> before_;
  std::vector<std::vector<CutCost>> best_;
};

}  // namespace

std::vector<std::uint32_t> even_counts(std::uint32_t layers, std::uint32_t stages) {
  PLUMBLINE_CHECK(stages >= 1 && stages <= layers, layers, stages);
  std::vector<std::uint32_t> counts(stages, layers / stages);
  for (std::uint32_t s = 0; s < layers % stages; ++s) ++counts[s];
  return counts;
}

std::vector<std::uint32_t> balanced_counts(const std::vector<Duration>& times,
                                           std::uint32_t stages) {
  PLUMBLINE_CHECK(stages >= 1 && stages <= times.size(), times.size(), stages);
  return Balancer(times, stages).counts();
}

Partition make_partition(const std::vector<LayerId>& order,
                         const std::vector<std::uint32_t>& counts,
                         std::vector<std::vector<DeviceId>> devices) {
  PLUMBLINE_CHECK(devices.size() == counts.size(), devices.size(), counts.size());
  Partition partition;
  auto at = order.begin();
  for (std::size_t s = 0; s < counts.size(); ++s) {
    PLUMBLINE_CHECK(counts[s] > 0 && order.end() - at >= counts[s], s, counts[s]);
    partition.stages.push_back({{at, at + counts[s]}, std::move(devices[s])});
    at += counts[s];
  }
  PLUMBLINE_CHECK(at == order.end(), order.size());
  return partition;
}

std::vector<Position> positions(const Partition& partition) {
  std::vector<Position> found;
  for (std::uint32_t s = 0; s < partition.stages.size(); ++s) {
    if (s > 0 && partition.stages[s].devices == partition.stages[s - 1].devices) {
      ++found.back().stages;
    } else {
      found.push_back({s, 1});
    }
  }
  return found;
}

std::vector<Position> stage_by_stage(const std::vector<Position>& positions) {
  std::vector<Position> found;
  for (const Position& position : positions) {
    for (std::uint32_t i = 0; i < position.stages; ++i)
      found.push_back({position.first_stage + i, 1, position.same_devices || i > 0});
  }
  return found;
}

std::vector<DeviceId> devices_in_use(const Partition& partition) {
  std::vector<DeviceId> devices;
  for (const Stage& stage : partition.stages) {
    devices.insert(devices.end(), stage.devices.begin(), stage.devices.end());
  }
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  return devices;
}

}  // namespace plumbline
