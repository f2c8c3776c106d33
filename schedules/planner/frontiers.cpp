// Enumerating executed sets: all of them, or those along one order.
//
// SPDX-License-Identifier: MIT
#include "schedules/planner/frontiers.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <tuple>
#include <utility>

#include "schedules/planner/executed_sets.h"

namespace plumbline {
namespace {

std::uint32_t layers_in(const std::uint64_t* row, std::uint32_t words) {
  std::uint32_t count = 0;
  for (std::uint32_t w = 0; w < words; ++w) count += std::popcount(row[w]);
  return count;
}

/// Whether `a` comes first of two rows that differ: it holds the first position in which they
/// differ.
bool earlier_layers(const std::uint64_t* a, const std::uint64_t* b, std::uint32_t words) {
  for (std::uint32_t w = 0; w < words; ++w) {
    if (a[w] == b[w]) continue;
    return (a[w] >> std::countr_zero(a[w] ^ b[w]) & 1U) != 0;
  }
  return false;
}

void sort_by_layers(Frontiers& frontiers) {
  std::vector<std::uint32_t> counts, by(frontiers.size());
  for (std::uint32_t i = 0; i < frontiers.size(); ++i) {
    counts.push_back(layers_in(frontiers.row(i), frontiers.words));
  }
  std::iota(by.begin(), by.end(), 0U);
  std::sort(by.begin(), by.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (counts[a] != counts[b]) return counts[a] < counts[b];
    return earlier_layers(frontiers.row(a), frontiers.row(b), frontiers.words);
  });
  frontiers.keep(by);
}

/// The begin of an order in the beam search.
struct Beam {
  ExecutedSet set;
  std::int64_t cut_bytes = 0;  ///< Crossing now.
  double sum = 0;              ///< The bytes that crossed after each layer so far.
  std::uint32_t parent = 0;    ///< Index in the step before.
  std::uint32_t layer = 0;     ///< The last one executed.
};

/// A topological order with few crossing bytes, as positions.
std::vector<std::uint32_t> narrow_order(const LayerPositions& graph) {
  constexpr std::size_t kWidth = 32;
  std::vector<Beam> beam;
  beam.push_back({ExecutedSet::start(graph), 0, 0, 0, 0});
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> history;  // (parent, layer)
  struct Step {
    double sum;
    std::int64_t cut_bytes;
    std::uint32_t parent, layer;
  };
  while (history.size() < graph.size()) {
    std::vector<Step> steps;
    for (std::uint32_t b = 0; b < beam.size(); ++b) {
      for (const std::uint32_t layer : beam[b].set.ready) {
        const std::int64_t cut_bytes =
            beam[b].cut_bytes + beam[b].set.cut_bytes_change(graph, layer);
        steps.push_back({beam[b].sum + static_cast<double>(cut_bytes), cut_bytes, b, layer});
      }
    }
    std::sort(steps.begin(), steps.end(), [](const Step& x, const Step& y) {
      return std::tie(x.sum, x.cut_bytes, x.parent, x.layer) <
             std::tie(y.sum, y.cut_bytes, y.parent, y.layer);
    });
    std::vector<Beam> next;
    RowTable seen(graph.words);
    history.emplace_back();
    for (const Step& step : steps) {
      if (next.size() == kWidth) break;
      LayerRow row = beam[step.parent].set.row;
      set_bit(row.data(), step.layer);
      if (!seen.insert(row).second) continue;
      next.push_back({beam[step.parent].set, step.cut_bytes, step.sum, step.parent, step.layer});
      next.back().set.execute(graph, step.layer);
      history.back().emplace_back(step.parent, step.layer);
    }
    beam = std::move(next);
  }
  std::vector<std::uint32_t> order(graph.size());
  std::uint32_t at = 0;  // the first of the last step has the least sum
  for (std::uint32_t i = graph.size(); i-- > 0;) {
    order[i] = history[i][at].second;
    at = history[i][at].first;
  }
  return order;
}

/// Keeps the first row, the last row, and the narrowest cut of each run of equal time between them.
void thin(Frontiers& frontiers, const LayerPositions& graph,
          const std::vector<std::int64_t>& cut_bytes, std::size_t max) {
  std::vector<std::int64_t> time;
  for (std::uint32_t i = 0; i < frontiers.size(); ++i) {
    std::int64_t sum = 0;
    for (std::uint32_t p = 0; p < graph.size(); ++p) {
      if (frontiers.holds(i, p)) sum += graph.time[p] + 1;
    }
    time.push_back(sum);
  }
  const auto runs = static_cast<double>(max - 2);
  std::vector<std::uint32_t> kept = {0};
  std::int64_t last_run = -1;
  for (std::uint32_t i = 1; i + 1 < frontiers.size(); ++i) {
    const auto run = static_cast<std::int64_t>(static_cast<double>(time[i]) /
                                               static_cast<double>(time.back() + 1) * runs);
    if (run != last_run) {
      kept.push_back(i);
    } else if (cut_bytes[i] < cut_bytes[kept.back()]) {
      kept.back() = i;
    }
    last_run = run;
  }
  kept.push_back(frontiers.size() - 1);
  frontiers.keep(kept);
}

}  // namespace

bool Frontiers::within(std::uint32_t inner, std::uint32_t outer) const {
  if (totally_ordered) return inner < outer;
  const std::uint64_t* const a = row(inner);
  const std::uint64_t* const b = row(outer);
  for (std::uint32_t w = 0; w < words; ++w) {
    if ((a[w] & ~b[w]) != 0) return false;
  }
  return inner != outer;
}

void Frontiers::keep(const std::vector<std::uint32_t>& kept) {
  std::vector<std::uint64_t> held;
  held.reserve(kept.size() * words);
  for (const std::uint32_t i : kept) held.insert(held.end(), row(i), row(i) + words);
  rows = std::move(held);
  totally_ordered = false;
  bool is_chain = true;
  for (std::uint32_t i = 1; i < size() && is_chain; ++i) is_chain = within(i - 1, i);
  totally_ordered = is_chain;
}

Frontiers all_frontiers(const LayerGraph& graph, const std::vector<LayerCosts>& costs,
                        const FrontierRules& rules) {
  const LayerPositions positions = positions_of(graph, costs, rules);
  RowTable table(positions.words);
  std::vector<ExecutedSet> level = {ExecutedSet::start(positions)};
  table.insert(level[0].row);
  while (!level.empty()) {
    std::vector<ExecutedSet> next;
    for (const ExecutedSet& set : level) {
      for (const std::uint32_t layer : set.ready) {
        ExecutedSet further = set;
        further.execute(positions, layer);
        further.close(positions, [](std::int64_t) {});
        if (!table.insert(further.row).second) continue;
        if (table.size() > rules.max) return one_order_frontiers(graph, costs, rules);
        next.push_back(std::move(further));
      }
    }
    level = std::move(next);
  }
  Frontiers frontiers{positions.order, positions.words, table.take(), false, false};
  sort_by_layers(frontiers);
  return frontiers;
}

Frontiers one_order_frontiers(const LayerGraph& graph, const std::vector<LayerCosts>& costs,
                              const FrontierRules& rules) {
  const LayerPositions positions = positions_of(graph, costs, rules);
  Frontiers frontiers{positions.order, positions.words, {}, true, false};
  std::vector<std::int64_t> cut_bytes;
  ExecutedSet set = ExecutedSet::start(positions);
  std::int64_t now = 0;
  const auto keep = [&] {
    frontiers.rows.insert(frontiers.rows.end(), set.row.begin(), set.row.end());
    cut_bytes.push_back(now);
  };
  keep();
  bool other_cuts = false;
  for (const std::uint32_t layer : narrow_order(positions)) {
    if (has_bit(set.row.data(), layer)) continue;
    other_cuts = other_cuts || set.ready.size() > 1;
    // The layers that are then free are executed, too, so that the same cuts count as in
    // all_frontiers.
    now += set.cut_bytes_change(positions, layer);
    set.execute(positions, layer);
    set.close(positions, [&](std::int64_t change) { now += change; });
    keep();
  }
  frontiers.restricted = other_cuts;
  if (frontiers.size() > rules.max_cuts) {
    thin(frontiers, positions, cut_bytes, rules.max_cuts);
    frontiers.restricted = true;
  }
  return frontiers;
}

}  // namespace plumbline
