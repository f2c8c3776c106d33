// The recurrence, one start at a time, with exact bounds on the split.
//
// SPDX-License-Identifier: MIT
#include "schedules/planner/published_planner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/bug.h"

namespace plumbline {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::uint32_t kNoSplit = std::numeric_limits<std::uint32_t>::max();

/// A value of A and its derivation.
struct Entry {
  double seconds = kNever;
  std::uint32_t split = kNoSplit;
  std::uint32_t machines = 0;  ///< The machines behind the split.
};

/// The values for all j and m of one start.
struct Table {
  std::uint32_t start = 0;
  std::uint32_t machines = 0;
  std::vector<Entry> entries;

  Entry& at(std::uint32_t j, std::uint32_t m) {
    return entries[std::size_t{j - start} * machines + m - 1];
  }
  const Entry& at(std::uint32_t j, std::uint32_t m) const {
    return entries[std::size_t{j - start} * machines + m - 1];
  }
};

class Solver {
 public:
  Solver(const PublishedFrontiers& states, const FrontierSums& sums,
         const std::vector<PublishedLevel>& levels, bool straight, bool activation_transfers,
         const std::function<bool(double)>& progress)
      : frontiers_(states.frontiers),
        levels_(levels),
        straight_(straight),
        transfers_(activation_transfers),
        progress_(progress),
        size_(states.frontiers.size()) {
    for (std::uint32_t s = 0; s < size_; ++s) {
      compute_.push_back(seconds(sums.forward[s] + sums.backward[s]));
      parameters_.push_back(static_cast<double>(sums.parameters[s].count));
      output_.push_back(static_cast<double>(states.output[s].count));
    }
    by_compute_.resize(size_);
    std::iota(by_compute_.begin(), by_compute_.end(), 0U);
    std::stable_sort(
        by_compute_.begin(), by_compute_.end(),
        [this](std::uint32_t a, std::uint32_t b) { return compute_[a] < compute_[b]; });
    for (const std::uint32_t s : by_compute_) sorted_compute_.push_back(compute_[s]);
    if (!frontiers_.totally_ordered) {
      words_ = (size_ + 63) / 64;
      within_.assign(std::size_t{size_} * words_, 0);
      for (std::uint32_t j = 0; j < size_; ++j) {
        for (std::uint32_t k = 0; k < j; ++k) {
          if (frontiers_.within(k, j))
            within_[std::size_t{j} * words_ + k / 64] |= std::uint64_t{1} << (k % 64);
        }
      }
    }
  }

  std::optional<PublishedPlan> solve() {
    const auto last = static_cast<std::uint32_t>(levels_.size() - 1);
    for (std::uint32_t level = 0; level < last; ++level) {
      std::vector<double> whole(std::size_t{size_} * (size_ + 1) / 2);
      for (std::uint32_t i = 0; i < size_; ++i) {
        if (progress_ && i % 16 == 0 && !progress_(static_cast<double>(i) / size_))
          return std::nullopt;
        const Table table = solve_start(level, i, size_ - 1);
        for (std::uint32_t j = i; j < size_; ++j) {
          whole[triangle(i, j)] = table.at(j, levels_[level].machines).seconds;
        }
      }
      components_.push_back(std::move(whole));
    }
    const Table table = solve_start(last, 0, size_ - 1);
    PublishedPlan plan;
    plan.seconds = table.at(size_ - 1, levels_[last].machines).seconds;
    for (Part& part : parts(last, 0, size_ - 1, table)) {
      std::sort(part.devices.begin(), part.devices.end());
      plan.stages.push_back({part.last, {}});
      for (const std::uint32_t device : part.devices)
        plan.stages.back().devices.push_back({device});
    }
    return plan;
  }

 private:
  /// A stage of a component, on devices counted from the component's first.
  struct Part {
    std::uint32_t last = 0;
    std::vector<std::uint32_t> devices;
  };

  std::size_t triangle(std::uint32_t i, std::uint32_t j) const {
    return std::size_t{j} * (std::size_t{j} + 1) / 2 + i;
  }
  bool within(std::uint32_t k, std::uint32_t j) const {
    if (frontiers_.totally_ordered) return k < j;
    return (within_[std::size_t{j} * words_ + k / 64] >> (k % 64) & 1U) != 0;
  }
  static double before(const std::vector<double>& sums, std::uint32_t i) {
    return i == 0 ? 0 : sums[i - 1];
  }
  /// comp(i..j) at a level: the compute of states i to j, without the part before i.
  double compute(std::uint32_t level, std::uint32_t i, std::uint32_t j) const {
    if (level > 0) return components_[level - 1][triangle(i, j)];
    return compute_[j] - before(compute_, i);
  }
  double parameters(std::uint32_t i, std::uint32_t j) const {
    return parameters_[j] - before(parameters_, i);
  }
  std::uint32_t devices_below(std::uint32_t level) const {
    std::uint32_t devices = 1;
    for (std::uint32_t l = 0; l < level; ++l) devices *= levels_[l].machines;
    return devices;
  }

  /// A(i, j, m) of one level for all j up to `last` and all m.
  Table solve_start(std::uint32_t level, std::uint32_t i, std::uint32_t last) const {
    const std::uint32_t machines = levels_[level].machines;
    const double bandwidth = levels_[level].bandwidth;
    const double below = level == 0 ? 1 : levels_[level - 1].machines;
    Table table{i, machines, std::vector<Entry>(std::size_t{last - i + 1} * machines)};
    for (std::uint32_t j = i; j <= last; ++j) {
      for (std::uint32_t m = 1; m <= (straight_ ? 1 : machines); ++m) {
        const double sync = 4.0 * (m - 1) * parameters(i, j) / (bandwidth * m) / below;
        table.at(j, m) = {(compute(level, i, j) + sync) / m, kNoSplit, m};
      }
    }
    for (std::uint32_t m = 2; m <= machines; ++m) {
      for (std::uint32_t j = i + 1; j <= last; ++j) improve(level, table, j, m);
    }
    return table;
  }

  void improve(std::uint32_t level, Table& table, std::uint32_t j, std::uint32_t m) const {
    Entry& best = table.at(j, m);
    const std::uint32_t i = table.start;
    const double bandwidth = levels_[level].bandwidth;
    const double devices = devices_below(level);
    const std::uint32_t max = straight_ ? 1 : m - 1;
    const auto try_split = [&](std::uint32_t k, std::uint32_t behind) {
      if (k < i || k >= j || !within(k, j)) return;
      const double front = table.at(k, m - behind).seconds;
      if (front > best.seconds) return;
      const double sync = 4.0 * (behind - 1) * parameters(k + 1, j) / (bandwidth * behind);
      double time = std::max(front, (compute(level, k + 1, j) + sync) / behind);
      if (transfers_) {
        time = std::max(time, 2.0 * output_[k] / (bandwidth * behind));
        if (j + 1 < size_) time = std::max(time, 2.0 * output_[j] / (bandwidth * behind));
      }
      if (time < best.seconds ||
          (time == best.seconds && best.split != kNoSplit &&
           (k < best.split || (k == best.split && behind < best.machines)))) {
        best = {time, k, behind};
      }
    };
    // The split of the state before gives a first bound.
    if (j > i + 1 && table.at(j - 1, m).split != kNoSplit) {
      try_split(table.at(j - 1, m).split, std::min(table.at(j - 1, m).machines, max));
    }
    for (std::uint32_t behind = 1; behind <= max; ++behind) {
      if (transfers_ && j + 1 < size_ && 2.0 * output_[j] / (bandwidth * behind) > best.seconds)
        continue;
      // A little slack, so that rounding skips nothing.
      const double bound = best.seconds * devices * (1 + 1e-12) + 1e-15;
      const double min = compute_[j] - bound * behind;
      auto at = std::lower_bound(sorted_compute_.begin(), sorted_compute_.end(), min) -
                sorted_compute_.begin();
      for (; at < static_cast<std::ptrdiff_t>(size_); ++at) {
        const double max_compute =
            before(compute_, i) + best.seconds * devices * (1 + 1e-12) * (m - behind) + 1e-15;
        if (sorted_compute_[at] > max_compute) break;
        try_split(by_compute_[at], behind);
      }
    }
  }

  /// The stages of A(start, end, all machines) of a level, innermost ones, in order.
  std::vector<Part> parts(std::uint32_t level, std::uint32_t start, std::uint32_t end,
                          const Table& table) const {
    struct Piece {
      std::uint32_t first, last, machines;
    };
    std::vector<Piece> pieces;
    std::uint32_t j = end;
    std::uint32_t m = levels_[level].machines;
    while (true) {
      const Entry& entry = table.at(j, m);
      if (entry.split == kNoSplit) {
        pieces.push_back({start, j, m});
        break;
      }
      pieces.push_back({entry.split + 1, j, entry.machines});
      j = entry.split;
      m -= entry.machines;
    }
    std::reverse(pieces.begin(), pieces.end());
    std::vector<Part> result;
    const std::uint32_t size = devices_below(level);
    std::uint32_t first_machine = 0;
    for (const Piece& piece : pieces) {
      std::vector<Part> inner = {{piece.last, {0}}};
      if (level > 0) {
        inner = parts(level - 1, piece.first, piece.last,
                      solve_start(level - 1, piece.first, piece.last));
      }
      for (const Part& part : inner) {
        result.push_back({part.last, {}});
        for (std::uint32_t machine = 0; machine < piece.machines; ++machine) {
          for (const std::uint32_t device : part.devices) {
            result.back().devices.push_back((first_machine + machine) * size + device);
          }
        }
      }
      first_machine += piece.machines;
    }
    return result;
  }

  const Frontiers& frontiers_;
  const std::vector<PublishedLevel>& levels_;
  bool straight_;
  bool transfers_;
  const std::function<bool(double)>& progress_;
  std::uint32_t size_;
  std::vector<double> compute_, parameters_, output_;
  std::vector<std::uint32_t> by_compute_;  ///< States, ascending by compute.
  std::vector<double> sorted_compute_;
  std::uint32_t words_ = 0;
  std::vector<std::uint64_t> within_;            ///< Row j: the states within state j.
  std::vector<std::vector<double>> components_;  ///< A(i, j, all) for each level but the last.
};

}  // namespace

std::vector<PublishedLevel> published_levels(const Cluster& cluster, std::uint32_t devices) {
  std::vector<PublishedLevel> levels;
  std::uint32_t below = 1;
  for (const Level& level : cluster.levels) {
    const std::uint32_t machines = std::min(level.size, std::max(1U, devices / below));
    levels.push_back({machines, level.link.bandwidth
                                    ? static_cast<double>(level.link.bandwidth->count)
                                    : std::numeric_limits<double>::infinity()});
    below *= level.size;
  }
  return levels;
}

std::optional<PublishedPlan> published_plan(const PublishedFrontiers& states,
                                            const FrontierSums& sums,
                                            const std::vector<PublishedLevel>& levels,
                                            bool straight, bool activation_transfers,
                                            const std::function<bool(double)>& progress) {
  return Solver(states, sums, levels, straight, activation_transfers, progress).solve();
}

double published_data_parallel(Duration compute, Bytes parameters,
                               const std::vector<PublishedLevel>& levels) {
  double time = seconds(compute);
  double below = 1;
  for (const PublishedLevel& level : levels) {
    const double n = level.machines;
    time = (time +
            4 * (n - 1) * static_cast<double>(parameters.count) / (level.bandwidth * n) / below) /
           n;
    below = n;
  }
  return time;
}

}  // namespace plumbline
