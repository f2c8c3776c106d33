// PipeDream's walk over executed sets, its order, and its charge for a cut.
//
// SPDX-License-Identifier: MIT
#include "schedules/planner/published_frontiers.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "schedules/planner/executed_sets.h"
#include "schedules/planner/frontier_sums.h"

namespace plumbline {
namespace {

class PublishedWalk {
 public:
  PublishedWalk(const LayerGraph& graph, const std::vector<LayerCosts>& costs, std::size_t max)
      : graph_(graph), costs_(costs), max_(max), positions_(positions_of(graph, costs)) {}

  PublishedFrontiers make() && {
    drop_unused_items();
    const auto first = first_source();
    if (!first || std::size_t{size()} * positions_.words > kMaxWords) return of_one_order();
    find_needs();
    if (!find_states(*first)) return of_one_order();
    result_.frontiers = {positions_.order, positions_.words, states_.take(), false, false};
    result_.frontiers.keep(reverse_post_order());
    charge_all();
    return std::move(result_);
  }

 private:
  std::uint32_t size() const { return positions_.size(); }

  /// Drops `__getitem__` layers that nobody consumes.
  void drop_unused_items() {
    for (std::uint32_t i = 0; i < size(); ++i) {
      dropped_[i] = positions_.consumers[i].empty() &&
                    graph_.layer(positions_.order[i]).kind.starts_with("__getitem__");
    }
  }

  /// The source that comes first in the file.
  std::optional<std::uint32_t> first_source() const {
    std::optional<std::uint32_t> first;
    for (std::uint32_t i = 0; i < size(); ++i) {
      if (!positions_.producers[i].empty() || dropped_[i]) continue;
      if (!first || positions_.order[i] < positions_.order[*first]) first = i;
    }
    return first;
  }

  PublishedFrontiers of_one_order() {
    result_.frontiers = one_order_frontiers(graph_, costs_, {.memory_counts = true, .max = max_});
    Frontiers& frontiers = result_.frontiers;
    frontiers.rows.erase(frontiers.rows.begin(), frontiers.rows.begin() + frontiers.words);
    frontiers.restricted = true;
    result_.output = frontier_sums(graph_, costs_, frontiers).cut_bytes;
    result_.counted.assign(size(), true);
    return std::move(result_);
  }

  /// Finds the layers that each layer needs, itself included.
  void find_needs() {
    needs_.assign(std::size_t{size()} * positions_.words, 0);
    for (std::uint32_t i = 0; i < size(); ++i) {
      set_bit(needs_of(i), i);
      for (const std::uint32_t producer : positions_.producers[i]) add_needs(producer, needs_of(i));
    }
  }

  std::uint64_t* needs_of(std::uint32_t i) {
    return needs_.data() + std::size_t{i} * positions_.words;
  }

  void add_needs(std::uint32_t layer, std::uint64_t* row) {
    for (std::uint32_t w = 0; w < positions_.words; ++w) row[w] |= needs_of(layer)[w];
  }

  /// Finds all states. With each successor of an executed layer it executes all layers that the
  /// successor needs. False = too many states.
  bool find_states(std::uint32_t first) {
    states_.insert(LayerRow(needs_of(first), needs_of(first) + positions_.words));
    for (std::uint32_t at = 0; at < states_.size(); ++at) {
      const LayerRow row(states_.row(at), states_.row(at) + positions_.words);
      successors_.emplace_back();
      for (std::uint32_t i = 0; i < size(); ++i) {
        if (has_bit(row.data(), i)) add_successors(row, i);
      }
      if (states_.size() > max_) return false;
    }
    return true;
  }

  /// Adds the successors of the last state, whose row this is, that execute a consumer of `layer`.
  void add_successors(const LayerRow& row, std::uint32_t layer) {
    for (const std::uint32_t consumer : positions_.consumers[layer]) {
      if (dropped_[consumer] || has_bit(row.data(), consumer)) continue;
      LayerRow further = row;
      add_needs(consumer, further.data());
      successors_.back().push_back(states_.insert(further).first);
    }
  }

  /// The reverse post-order of a depth-first search, without recursion.
  std::vector<std::uint32_t> reverse_post_order() const {
    std::vector<std::uint32_t> order;
    std::vector<std::uint32_t> next(successors_.size(), 0);
    std::vector<bool> entered(successors_.size(), false);
    std::vector<std::uint32_t> path = {0};
    entered[0] = true;
    while (!path.empty()) {
      const std::uint32_t at = path.back();
      if (next[at] == successors_[at].size()) {
        order.push_back(at);
        path.pop_back();
        continue;
      }
      const std::uint32_t to = successors_[at][next[at]++];
      if (entered[to]) continue;
      entered[to] = true;
      path.push_back(to);
    }
    std::reverse(order.begin(), order.end());
    return order;
  }

  void charge_all() {
    for (std::uint32_t s = 0; s < result_.frontiers.size(); ++s) {
      const std::uint64_t* const row = result_.frontiers.row(s);
      for (std::uint32_t i = 0; i < size(); ++i) {
        if (has_bit(row, i)) result_.counted[i] = true;
      }
      result_.output.push_back(charge(row));
    }
  }

  /// The outputs that are charged for a cut behind a state.
  Bytes charge(const std::uint64_t* row) {
    LayerRow charged(positions_.words, 0);
    for (std::uint32_t member = 0; member < size(); ++member) {
      if (has_bit(row, member) && !has_consumer_in(row, member)) charge_for(member, charged);
    }
    std::int64_t bytes = 0;
    for (std::uint32_t i = 0; i < size(); ++i) {
      if (has_bit(charged.data(), i)) bytes += positions_.output[i];
    }
    return {bytes};
  }

  /// Whether the row has a consumer of the layer. Then the layer is not a member of the antichain.
  bool has_consumer_in(const std::uint64_t* row, std::uint32_t layer) const {
    const auto& consumers = positions_.consumers[layer];
    return std::any_of(consumers.begin(), consumers.end(),
                       [&](std::uint32_t c) { return has_bit(row, c); });
  }

  /// The member's output, and those of its ancestors that others consume.
  void charge_for(std::uint32_t member, LayerRow& charged) {
    set_bit(charged.data(), member);
    const std::uint64_t* const needs = needs_of(member);
    for (std::uint32_t i = 0; i < member; ++i) {
      if (!has_bit(needs, i)) continue;
      const auto& others = positions_.consumers[i];
      if (std::any_of(others.begin(), others.end(),
                      [&](std::uint32_t c) { return !dropped_[c] && !has_bit(needs, c); }))
        set_bit(charged.data(), i);
    }
  }

  static constexpr std::size_t kMaxWords = std::size_t{32} << 20U;  // the most of `needs_`

  const LayerGraph& graph_;
  const std::vector<LayerCosts>& costs_;
  std::size_t max_;
  LayerPositions positions_;
  std::vector<bool> dropped_ = std::vector<bool>(positions_.size(), false);
  std::vector<std::uint64_t> needs_;  ///< Row after row, one per layer.
  RowTable states_{positions_.words};
  std::vector<std::vector<std::uint32_t>> successors_;  ///< By state.
  PublishedFrontiers result_{{}, {}, std::vector<bool>(positions_.size(), false)};
};

}  // namespace

PublishedFrontiers published_frontiers(const LayerGraph& graph,
                                       const std::vector<LayerCosts>& costs, std::size_t max) {
  return PublishedWalk(graph, costs, max).make();
}

}  // namespace plumbline
