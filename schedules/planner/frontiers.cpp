// Enumerating executed sets as rows of bits.
//
// SPDX-License-Identifier: MIT
#include "schedules/planner/frontiers.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <tuple>

#include "base/bug.h"

namespace plumbline {
namespace {

using Row = std::vector<std::uint64_t>;

bool test(const std::uint64_t* row, std::uint32_t bit) {
  return (row[bit / 64] >> (bit % 64) & 1U) != 0;
}
void set(std::uint64_t* row, std::uint32_t bit) { row[bit / 64] |= std::uint64_t{1} << (bit % 64); }

/// The layer graph by positions in its topological order, with what a cut costs.
struct Positions {
  std::vector<LayerId> order;
  std::vector<std::vector<std::uint32_t>> producers, consumers;
  std::vector<std::int64_t> output;
  std::vector<std::int64_t> time;
  std::vector<bool> is_free;
  std::uint32_t words = 0;

  std::uint32_t size() const { return static_cast<std::uint32_t>(order.size()); }
};

Positions positions_of(const LayerGraph& graph, const std::vector<LayerCosts>& costs,
                       const FrontierRules& rules) {
  PLUMBLINE_CHECK(costs.size() == graph.size(), costs.size(), graph.size());
  Positions result;
  result.order = graph.topological_order();
  const std::uint32_t size = result.size();
  result.words = (size + 63) / 64;
  std::vector<std::uint32_t> position(size, 0);
  for (std::uint32_t i = 0; i < size; ++i) position[result.order[i].value] = i;
  result.producers.resize(size);
  result.consumers.resize(size);
  for (const LayerEdge& edge : graph.edges()) {
    result.producers[position[edge.to.value]].push_back(position[edge.from.value]);
    result.consumers[position[edge.from.value]].push_back(position[edge.to.value]);
  }
  for (std::uint32_t i = 0; i < size; ++i) {
    const LayerCosts& cost = costs[result.order[i].value];
    const Duration time = cost.forward.mean + cost.backward.mean + cost.update.mean;
    result.output.push_back(cost.output.count);
    result.time.push_back(time.count());
    result.is_free.push_back(time.count() == 0 && !rules.inputs_count &&
                             graph.layer(result.order[i]).parameters.count == 0 &&
                             !(rules.memory_counts && cost.activation.count > 0));
    std::sort(result.producers[i].begin(), result.producers[i].end());
    std::sort(result.consumers[i].begin(), result.consumers[i].end());
  }
  return result;
}

/// One executed set on its way through the graph.
struct Walk {
  Row row;
  std::vector<std::uint32_t> ready;  ///< Not executed, all producers are; ascending.

  static Walk start(const Positions& graph) {
    Walk walk{Row(graph.words, 0), {}};
    for (std::uint32_t i = 0; i < graph.size(); ++i) {
      if (graph.producers[i].empty()) walk.ready.push_back(i);
    }
    return walk;
  }

  /// Executes one layer. Requires: it is ready.
  void execute(const Positions& graph, std::uint32_t layer) {
    set(row.data(), layer);
    ready.erase(std::lower_bound(ready.begin(), ready.end(), layer));
    for (const std::uint32_t consumer : graph.consumers[layer]) {
      if (std::all_of(graph.producers[consumer].begin(), graph.producers[consumer].end(),
                      [&](std::uint32_t p) { return test(row.data(), p); })) {
        ready.insert(std::lower_bound(ready.begin(), ready.end(), consumer), consumer);
      }
    }
  }

  /// By how many bytes executing a ready layer changes what crosses.
  std::int64_t cut_bytes_change(const Positions& graph, std::uint32_t layer) const {
    std::int64_t change = graph.consumers[layer].empty() ? 0 : graph.output[layer];
    for (const std::uint32_t producer : graph.producers[layer]) {
      const bool last_consumer =
          std::all_of(graph.consumers[producer].begin(), graph.consumers[producer].end(),
                      [&](std::uint32_t c) { return c == layer || test(row.data(), c); });
      if (last_consumer) change -= graph.output[producer];
    }
    return change;
  }

  /// Executes every free layer that does not raise what crosses. The change can only fall as more
  /// is executed, so that the outcome does not depend on the order, and larger sets stay larger.
  void close(const Positions& graph) {
    for (bool changed = true; changed;) {
      changed = false;
      for (const std::uint32_t layer : ready) {
        if (!graph.is_free[layer] || cut_bytes_change(graph, layer) > 0) continue;
        execute(graph, layer);
        changed = true;
        break;
      }
    }
  }
};

/// Rows in the order in which they were found, each once: an open-addressed table of indices.
class RowTable {
 public:
  explicit RowTable(std::uint32_t words) : words_(words), slots_(1024, 0) {}

  std::uint32_t size() const { return size_; }
  const std::uint64_t* row(std::uint32_t i) const { return rows_.data() + std::size_t{i} * words_; }
  std::vector<std::uint64_t> take() { return std::move(rows_); }

  /// The index of `row`, and whether it is new.
  std::pair<std::uint32_t, bool> insert(const Row& row) {
    if (2 * (std::size_t{size_} + 1) > slots_.size()) grow();
    const std::size_t slot = find(row.data());
    if (slots_[slot] != 0) return {slots_[slot] - 1, false};
    rows_.insert(rows_.end(), row.begin(), row.end());
    slots_[slot] = ++size_;
    return {size_ - 1, true};
  }

 private:
  std::size_t find(const std::uint64_t* wanted) const {
    std::uint64_t hash = 0;
    for (std::uint32_t w = 0; w < words_; ++w) {
      hash = (hash ^ wanted[w]) * 0x9E3779B97F4A7C15ULL;
      hash ^= hash >> 29U;
    }
    std::size_t slot = hash & (slots_.size() - 1);
    while (slots_[slot] != 0 && !std::equal(wanted, wanted + words_, row(slots_[slot] - 1))) {
      slot = (slot + 1) & (slots_.size() - 1);
    }
    return slot;
  }
  void grow() {
    slots_.assign(slots_.size() * 2, 0);
    for (std::uint32_t i = 0; i < size_; ++i) slots_[find(row(i))] = i + 1;
  }

  std::uint32_t words_;
  std::uint32_t size_ = 0;
  std::vector<std::uint64_t> rows_;
  std::vector<std::uint32_t> slots_;  ///< Index + 1; 0 = empty.
};

std::uint32_t layers_in(const std::uint64_t* row, std::uint32_t words) {
  std::uint32_t count = 0;
  for (std::uint32_t w = 0; w < words; ++w) count += std::popcount(row[w]);
  return count;
}

/// Whether `a` comes first of two rows that differ: the one that holds the first position in which
/// they differ.
bool earlier_layers(const std::uint64_t* a, const std::uint64_t* b, std::uint32_t words) {
  for (std::uint32_t w = 0; w < words; ++w) {
    if (a[w] == b[w]) continue;
    return (a[w] >> std::countr_zero(a[w] ^ b[w]) & 1U) != 0;
  }
  return false;
}

/// Puts rows into the given order.
void reorder(Frontiers& frontiers, const std::vector<std::uint32_t>& by) {
  std::vector<std::uint64_t> rows;
  rows.reserve(frontiers.rows.size());
  for (const std::uint32_t i : by) {
    rows.insert(rows.end(), frontiers.row(i), frontiers.row(i) + frontiers.words);
  }
  frontiers.rows = std::move(rows);
}

bool is_chain(const Frontiers& frontiers) {
  for (std::uint32_t i = 1; i < frontiers.size(); ++i) {
    if (!frontiers.within(i - 1, i)) return false;
  }
  return true;
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
  reorder(frontiers, by);
  frontiers.totally_ordered = is_chain(frontiers);
}

/// A partial order in the beam search.
struct Beam {
  Walk walk;
  std::int64_t cut_bytes = 0;  ///< Now.
  double sum = 0;              ///< Of what crossed after each layer so far.
  std::uint32_t parent = 0;    ///< In the step before.
  std::uint32_t layer = 0;     ///< Executed last.
};

/// A topological order with few crossing bytes, as positions.
std::vector<std::uint32_t> narrow_order(const Positions& graph) {
  constexpr std::size_t kWidth = 32;
  std::vector<Beam> beam;
  beam.push_back({Walk::start(graph), 0, 0, 0, 0});
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> history;  // (parent, layer)
  struct Step {
    double sum;
    std::int64_t cut_bytes;
    std::uint32_t parent, layer;
  };
  while (history.size() < graph.size()) {
    std::vector<Step> steps;
    for (std::uint32_t b = 0; b < beam.size(); ++b) {
      for (const std::uint32_t layer : beam[b].walk.ready) {
        const std::int64_t cut_bytes =
            beam[b].cut_bytes + beam[b].walk.cut_bytes_change(graph, layer);
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
      Row row = beam[step.parent].walk.row;
      set(row.data(), step.layer);
      if (!seen.insert(row).second) continue;
      next.push_back({beam[step.parent].walk, step.cut_bytes, step.sum, step.parent, step.layer});
      next.back().walk.execute(graph, step.layer);
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

/// Keeps the first and last row and, of each run of equal time between them, the narrowest cut.
void thin(Frontiers& frontiers, const Positions& graph, const std::vector<std::int64_t>& cut_bytes,
          std::size_t max) {
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
  reorder(frontiers, kept);
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

Frontiers all_frontiers(const LayerGraph& graph, const std::vector<LayerCosts>& costs,
                        const FrontierRules& rules) {
  const Positions positions = positions_of(graph, costs, rules);
  RowTable table(positions.words);
  std::vector<Walk> level = {Walk::start(positions)};
  table.insert(level[0].row);
  while (!level.empty()) {
    std::vector<Walk> next;
    for (const Walk& walk : level) {
      for (const std::uint32_t layer : walk.ready) {
        Walk further = walk;
        further.execute(positions, layer);
        further.close(positions);
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
  const Positions positions = positions_of(graph, costs, rules);
  Frontiers frontiers{positions.order, positions.words, {}, true, false};
  std::vector<std::int64_t> cut_bytes;
  Walk walk = Walk::start(positions);
  std::int64_t now = 0;
  const auto keep = [&] {
    frontiers.rows.insert(frontiers.rows.end(), walk.row.begin(), walk.row.end());
    cut_bytes.push_back(now);
  };
  // Executes a layer and what is then free, so that the same cuts count as in all_frontiers.
  const auto execute = [&](std::uint32_t layer) {
    now += walk.cut_bytes_change(positions, layer);
    walk.execute(positions, layer);
  };
  const auto close = [&] {
    for (bool changed = true; changed;) {
      changed = false;
      for (const std::uint32_t layer : walk.ready) {
        if (!positions.is_free[layer] || walk.cut_bytes_change(positions, layer) > 0) continue;
        execute(layer);
        changed = true;
        break;
      }
    }
  };
  keep();
  bool other_cuts = false;
  for (const std::uint32_t layer : narrow_order(positions)) {
    if (test(walk.row.data(), layer)) continue;
    other_cuts = other_cuts || walk.ready.size() > 1;
    execute(layer);
    close();
    keep();
  }
  frontiers.restricted = other_cuts;
  if (frontiers.size() > rules.max_cuts) {
    thin(frontiers, positions, cut_bytes, rules.max_cuts);
    frontiers.restricted = true;
  }
  return frontiers;
}

PublishedFrontiers published_frontiers(const LayerGraph& graph,
                                       const std::vector<LayerCosts>& costs, std::size_t max) {
  const Positions positions = positions_of(graph, costs, {});
  const std::uint32_t size = positions.size();
  PublishedFrontiers result;
  result.counted.assign(size, false);
  // `__getitem__` layers that nobody consumes are not there.
  std::vector<bool> dropped(size, false);
  for (std::uint32_t i = 0; i < size; ++i) {
    dropped[i] = positions.consumers[i].empty() &&
                 graph.layer(positions.order[i]).kind.starts_with("__getitem__");
  }
  const auto one_order = [&] {
    result.frontiers = one_order_frontiers(graph, costs, {.memory_counts = true, .max = max});
    Frontiers& frontiers = result.frontiers;
    frontiers.rows.erase(frontiers.rows.begin(), frontiers.rows.begin() + frontiers.words);
    frontiers.restricted = true;
    result.output = frontier_sums(graph, costs, frontiers).cut_bytes;
    result.counted.assign(size, true);
  };
  std::uint32_t first = size;  // the first source in the file
  for (std::uint32_t i = 0; i < size; ++i) {
    if (!positions.producers[i].empty() || dropped[i]) continue;
    if (first == size || positions.order[i] < positions.order[first]) first = i;
  }
  if (first == size || std::size_t{size} * positions.words > (std::size_t{32} << 20U)) {
    one_order();
    return result;
  }

  // What each layer needs, itself included.
  std::vector<std::uint64_t> needs(std::size_t{size} * positions.words, 0);
  const auto needs_of = [&](std::uint32_t i) {
    return needs.data() + std::size_t{i} * positions.words;
  };
  for (std::uint32_t i = 0; i < size; ++i) {
    set(needs_of(i), i);
    for (const std::uint32_t producer : positions.producers[i]) {
      for (std::uint32_t w = 0; w < positions.words; ++w) needs_of(i)[w] |= needs_of(producer)[w];
    }
  }

  // Execute with each successor of an executed layer all that it needs.
  RowTable table(positions.words);
  std::vector<std::vector<std::uint32_t>> successors;
  table.insert(Row(needs_of(first), needs_of(first) + positions.words));
  for (std::uint32_t at = 0; at < table.size(); ++at) {
    const Row row(table.row(at), table.row(at) + positions.words);
    successors.emplace_back();
    for (std::uint32_t i = 0; i < size; ++i) {
      if (!test(row.data(), i)) continue;
      for (const std::uint32_t consumer : positions.consumers[i]) {
        if (dropped[consumer] || test(row.data(), consumer)) continue;
        Row further = row;
        for (std::uint32_t w = 0; w < positions.words; ++w) further[w] |= needs_of(consumer)[w];
        successors.back().push_back(table.insert(further).first);
      }
    }
    if (table.size() > max) {
      one_order();
      return result;
    }
  }

  // Reverse post-order of a depth-first search, without recursion.
  std::vector<std::uint32_t> order;
  std::vector<std::uint32_t> next(table.size(), 0);
  std::vector<bool> entered(table.size(), false);
  std::vector<std::uint32_t> path = {0};
  entered[0] = true;
  while (!path.empty()) {
    const std::uint32_t at = path.back();
    if (next[at] == successors[at].size()) {
      order.push_back(at);
      path.pop_back();
      continue;
    }
    const std::uint32_t to = successors[at][next[at]++];
    if (entered[to]) continue;
    entered[to] = true;
    path.push_back(to);
  }
  std::reverse(order.begin(), order.end());
  result.frontiers = {positions.order, positions.words, table.take(), false, false};
  reorder(result.frontiers, order);
  result.frontiers.totally_ordered = is_chain(result.frontiers);

  for (std::uint32_t s = 0; s < result.frontiers.size(); ++s) {
    const std::uint64_t* const row = result.frontiers.row(s);
    Row charged(positions.words, 0);
    for (std::uint32_t member = 0; member < size; ++member) {
      if (!test(row, member)) continue;
      result.counted[member] = true;
      const auto& consumers = positions.consumers[member];
      if (std::any_of(consumers.begin(), consumers.end(),
                      [&](std::uint32_t c) { return test(row, c); })) {
        continue;  // no member of the antichain
      }
      set(charged.data(), member);
      for (std::uint32_t i = 0; i < member; ++i) {
        if (!test(needs_of(member), i)) continue;
        const auto& others = positions.consumers[i];
        if (std::any_of(others.begin(), others.end(), [&](std::uint32_t c) {
              return !dropped[c] && !test(needs_of(member), c);
            })) {
          set(charged.data(), i);
        }
      }
    }
    std::int64_t bytes = 0;
    for (std::uint32_t i = 0; i < size; ++i) {
      if (test(charged.data(), i)) bytes += positions.output[i];
    }
    result.output.push_back({bytes});
  }
  return result;
}

FrontierSums frontier_sums(const LayerGraph& graph, const std::vector<LayerCosts>& costs,
                           const Frontiers& frontiers) {
  const Positions positions = positions_of(graph, costs, {});
  FrontierSums sums;
  for (std::uint32_t s = 0; s < frontiers.size(); ++s) {
    const std::uint64_t* const row = frontiers.row(s);
    Duration forward{}, backward{}, again{}, update{}, update_before{};
    Bytes parameters, stepped, reduced, activation, cut_bytes;
    for (std::uint32_t i = 0; i < positions.size(); ++i) {
      if (!test(row, i)) continue;
      const LayerCosts& cost = costs[positions.order[i].value];
      forward += cost.forward.mean;
      backward += cost.backward.mean;
      again += cost.again().mean;
      update += cost.update.mean;
      if (graph.layer(positions.order[i]).reduced_elsewhere.count > 0)
        update_before += cost.update_in_group();
      parameters += graph.layer(positions.order[i]).parameters;
      stepped += graph.layer(positions.order[i]).stepped();
      reduced += graph.layer(positions.order[i]).reduced();
      activation += cost.activation;
      const auto& consumers = positions.consumers[i];
      if (std::any_of(consumers.begin(), consumers.end(),
                      [&](std::uint32_t c) { return !test(row, c); })) {
        cut_bytes += cost.output;
      }
    }
    sums.forward.push_back(forward);
    sums.backward.push_back(backward);
    sums.again.push_back(again);
    sums.update.push_back(update);
    sums.update_before.push_back(update_before);
    sums.parameters.push_back(parameters);
    sums.stepped.push_back(stepped);
    sums.reduced.push_back(reduced);
    sums.activation.push_back(activation);
    sums.cut_bytes.push_back(cut_bytes);
  }
  return sums;
}

FrontierCheckpoints::FrontierCheckpoints(const LayerGraph& graph,
                                         const std::vector<LayerCosts>& costs) {
  Positions positions = positions_of(graph, costs, {});
  costs_.reserve(costs.size());
  for (const LayerId layer : positions.order) costs_.push_back(costs[layer.value]);
  consumers_ = std::move(positions.consumers);
}

Checkpoints FrontierCheckpoints::between(const Frontiers& frontiers, std::uint32_t first,
                                         std::uint32_t last) const {
  Checkpoints sum;
  const std::uint64_t* const before = frontiers.row(first);
  const std::uint64_t* const after = frontiers.row(last);
  for (std::uint32_t w = 0; w < frontiers.words; ++w) {
    for (std::uint64_t layers = after[w] & ~before[w]; layers != 0; layers &= layers - 1) {
      const auto i = w * 64 + static_cast<std::uint32_t>(std::countr_zero(layers));
      sum.add(costs_[i], std::any_of(consumers_[i].begin(), consumers_[i].end(),
                                     [&](std::uint32_t c) { return frontiers.holds(last, c); }));
    }
  }
  return sum;
}

}  // namespace plumbline
