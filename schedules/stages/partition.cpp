// Even and balanced cuts.
//
// SPDX-License-Identifier: MIT
#include "schedules/stages/partition.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/bug.h"

namespace plumbline {
namespace {

__extension__ using Wide = __int128;

/// Sums of times: [i] of those before layer i.
using Sums = std::vector<std::int64_t>;

/// Whether `stages` contiguous parts suffice for no part to exceed `limit`.
bool fits(const Sums& before, std::size_t stages, std::int64_t limit) {
  std::size_t used = 1;
  std::int64_t begin = 0;  // the sum before the current part
  for (std::size_t i = 1; i < before.size(); ++i) {
    if (before[i] - before[i - 1] > limit) return false;
    if (before[i] - begin <= limit) continue;
    ++used;
    begin = before[i - 1];
  }
  return used <= stages;
}

/// Whether contiguous parts, one per stage and none empty, can all take `limit` at most, each by
/// the times of its stage's kind.
bool fits(const std::vector<Sums>& before, const std::vector<std::uint32_t>& kinds,
          std::int64_t limit) {
  const std::size_t layers = before.front().size() - 1;
  std::vector<bool> reached(layers + 1, false);  // where the stages so far can end
  reached[0] = true;
  for (const std::uint32_t kind : kinds) {
    const Sums& sums = before[kind];
    std::vector<bool> next(layers + 1, false);
    std::size_t end = 0;     // the furthest end of a stage that begins at `start`
    std::size_t marked = 0;  // ends up to here are known
    for (std::size_t start = 0; start < layers; ++start) {
      while (end < layers && sums[end + 1] - sums[start] <= limit) ++end;
      if (!reached[start] || end <= start) continue;
      for (marked = std::max(marked, start); marked < end;) next[++marked] = true;
    }
    reached = std::move(next);
  }
  return reached[layers];
}

std::int64_t min_maximum(const std::vector<Sums>& before, const std::vector<std::uint32_t>& kinds) {
  std::int64_t low = 0;
  std::int64_t high = 0;
  for (const Sums& sums : before) high = std::max(high, sums.back());
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    const bool is_enough = before.size() == 1 ? fits(before.front(), kinds.size(), middle)
                                              : fits(before, kinds, middle);
    if (is_enough) {
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
  Balancer(const std::vector<std::vector<Duration>>& times, std::vector<std::uint32_t> kinds)
      : layers_(static_cast<std::uint32_t>(times.front().size())),
        stages_(static_cast<std::uint32_t>(kinds.size())),
        kinds_(std::move(kinds)) {
    for (const std::vector<Duration>& of_kind : times) {
      Sums& sums = before_.emplace_back(std::size_t{layers_} + 1, 0);
      for (std::size_t i = 0; i < layers_; ++i) sums[i + 1] = sums[i] + of_kind[i].count();
    }
    limit_ = min_maximum(before_, kinds_);
  }

  std::vector<std::uint32_t> counts() {
    // best_[k][i]: layers i.. cut into k + 1 stages. Solved for one stage, then two, ...
    best_.assign(stages_, std::vector<CutCost>(layers_ + 1));
    for (std::uint32_t i = 0; i < layers_; ++i) best_[0][i] = cost(0, i, layers_);
    for (std::uint32_t k = 1; k < stages_; ++k) solve(k, 0, layers_ - k - 1, 1, layers_ - k);
    // Read back from the front: the longest first stage that reaches the optimum, then the same for
    // the rest.
    std::vector<std::uint32_t> found;
    std::uint32_t start = 0;
    for (std::uint32_t k = stages_ - 1; k > 0; --k) {
      std::uint32_t end = layers_ - k;
      while (!(cost(k, start, end) + best_[k - 1][end] == best_[k][start])) --end;
      found.push_back(end - start);
      start = end;
    }
    found.push_back(layers_ - start);
    return found;
  }

 private:
  /// Of a stage with k stages behind it.
  CutCost cost(std::uint32_t k, std::uint32_t first, std::uint32_t end) const {
    const Sums& sums = before_[kinds_[stages_ - 1 - k]];
    const Wide time = sums[end] - sums[first];
    return {std::max<Wide>(0, time - limit_), time * time};
  }

  /// best_[k][start] for start in [low, high], whose first stage ends in [end_low, end_high].
  void solve(std::uint32_t k, std::uint32_t low, std::uint32_t high, std::uint32_t end_low,
             std::uint32_t end_high) {
    const std::uint32_t start = low + (high - low) / 2;
    std::uint32_t best_end = 0;
    for (std::uint32_t end = std::max(end_low, start + 1); end <= end_high; ++end) {
      const CutCost total = cost(k, start, end) + best_[k - 1][end];
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
  std::int64_t limit_ = 0;
  std::vector<std::uint32_t> kinds_;  ///< By stage.
  std::vector<Sums> before_;          ///< By kind.
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
  return balanced_counts(std::vector<std::vector<Duration>>{times},
                         std::vector<std::uint32_t>(stages, 0));
}

std::vector<std::uint32_t> balanced_counts(const std::vector<std::vector<Duration>>& times,
                                           const std::vector<std::uint32_t>& kinds) {
  PLUMBLINE_CHECK(!kinds.empty() && kinds.size() <= times.front().size(), times.front().size(),
                  kinds.size());
  return Balancer(times, kinds).counts();
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
