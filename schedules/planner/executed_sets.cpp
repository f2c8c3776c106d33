// A layer graph by positions, sets that grow along it, and a table of them.
//
// SPDX-License-Identifier: MIT
#include "schedules/planner/executed_sets.h"

#include <algorithm>

#include "base/bug.h"

namespace plumbline {

LayerPositions positions_of(const LayerGraph& graph, const std::vector<LayerCosts>& costs,
                            const FrontierRules& rules) {
  PLUMBLINE_CHECK(costs.size() == graph.size(), costs.size(), graph.size());
  LayerPositions result;
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

ExecutedSet ExecutedSet::start(const LayerPositions& graph) {
  ExecutedSet walk{LayerRow(graph.words, 0), {}};
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    if (graph.producers[i].empty()) walk.ready.push_back(i);
  }
  return walk;
}

void ExecutedSet::execute(const LayerPositions& graph, std::uint32_t layer) {
  set_bit(row.data(), layer);
  ready.erase(std::lower_bound(ready.begin(), ready.end(), layer));
  for (const std::uint32_t consumer : graph.consumers[layer]) {
    if (std::all_of(graph.producers[consumer].begin(), graph.producers[consumer].end(),
                    [&](std::uint32_t p) { return has_bit(row.data(), p); })) {
      ready.insert(std::lower_bound(ready.begin(), ready.end(), consumer), consumer);
    }
  }
}

std::int64_t ExecutedSet::cut_bytes_change(const LayerPositions& graph, std::uint32_t layer) const {
  std::int64_t change = graph.consumers[layer].empty() ? 0 : graph.output[layer];
  for (const std::uint32_t producer : graph.producers[layer]) {
    const bool last_consumer =
        std::all_of(graph.consumers[producer].begin(), graph.consumers[producer].end(),
                    [&](std::uint32_t c) { return c == layer || has_bit(row.data(), c); });
    if (last_consumer) change -= graph.output[producer];
  }
  return change;
}

std::pair<std::uint32_t, bool> RowTable::insert(const LayerRow& row) {
  if (2 * (std::size_t{size_} + 1) > slots_.size()) grow();
  const std::size_t slot = find(row.data());
  if (slots_[slot] != 0) return {slots_[slot] - 1, false};
  rows_.insert(rows_.end(), row.begin(), row.end());
  slots_[slot] = ++size_;
  return {size_ - 1, true};
}

std::size_t RowTable::find(const std::uint64_t* wanted) const {
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

void RowTable::grow() {
  slots_.assign(slots_.size() * 2, 0);
  for (std::uint32_t i = 0; i < size_; ++i) slots_[find(row(i))] = i + 1;
}

}  // namespace plumbline
