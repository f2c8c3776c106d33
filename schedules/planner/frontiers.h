// The places where a layer graph can be cut: sets of layers that have been executed up to there.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "models/profile/profile.h"

namespace plumbline {

/// The most frontiers that are searched exactly; above that the cuts are those of one order.
inline constexpr std::size_t kMaxFrontiers = 20'000;

/// The most cuts that are kept of one order; see one_order_frontiers.
inline constexpr std::size_t kMaxCutsOfOneOrder = 2'500;

/// Frontiers of a layer graph. A frontier is an antichain of layers. It stands for the set of all
/// layers that are executed up to and including it; only that set is kept (a row of bits).
/// Invariants: a row that holds a layer holds all producers of it; rows differ; a row that holds
/// another row comes after it; the last row holds all layers that are placed. Devices play no part
/// here.
struct Frontiers {
  /// All layers in the graph's topological order; bit i of a row stands for order[i].
  std::vector<LayerId> order;
  std::uint32_t words = 0;          ///< 64-bit words of one row.
  std::vector<std::uint64_t> rows;  ///< Row after row.
  bool totally_ordered = false;     ///< Every frontier holds all frontiers before it.
  bool restricted = false;          ///< Some frontiers that might be better are left out.

  std::uint32_t size() const {
    return words == 0 ? 0 : static_cast<std::uint32_t>(rows.size() / words);
  }
  const std::uint64_t* row(std::uint32_t frontier) const {
    return rows.data() + std::size_t{frontier} * words;
  }
  /// Whether frontier `frontier` has executed order[position].
  bool holds(std::uint32_t frontier, std::uint32_t position) const {
    return (row(frontier)[position / 64] >> (position % 64) & 1U) != 0;
  }
  /// Whether `outer` has executed all layers that `inner` has, and more. O(words).
  bool within(std::uint32_t inner, std::uint32_t outer) const;
  /// Keeps only these rows, in this order, and sets `totally_ordered`.
  void keep(const std::vector<std::uint32_t>& kept);
};

/// Rules for finding frontiers, for the calibrated cost model.
struct FrontierRules {
  /// Whether a layer's activation memory keeps it from counting as free.
  bool memory_counts = false;
  /// Whether a stage keeps the inputs of its layers. Then each layer adds memory, and none is free.
  bool inputs_count = false;
  std::size_t max = kMaxFrontiers;
  std::size_t max_cuts = kMaxCutsOfOneOrder;  ///< The most cuts of one order; at least 3.
};

/// All frontiers from "nothing is executed" (the first, as after a virtual source) to "all is
/// executed" (the last), except those that cannot be better. A free layer has no time, no
/// parameters and, where memory counts, no activation. It is executed as soon as its producers are,
/// wherever that does not raise the bytes that cross. Any cut, and all cuts of a plan at once, can
/// be moved so without raising any stage's time, memory or traffic. So the frontiers that are left
/// out are never better. Above `rules.max` frontiers: one_order_frontiers. Deterministic: sorted by
/// the number of layers, then those with earlier layers first. Requires: a graph without a cycle;
/// one cost per layer.
Frontiers all_frontiers(const LayerGraph& graph, const std::vector<LayerCosts>& costs,
                        const FrontierRules& rules);

/// The cuts along ONE topological order, chosen for few crossing bytes. A beam search over executed
/// sets keeps those whose prefixes sum to the fewest bytes (a heuristic). At most `rules.max_cuts`
/// are kept: the one with the fewest bytes in each run of equal time. `restricted` is set unless
/// the graph has no other cuts. Requires: as all_frontiers.
Frontiers one_order_frontiers(const LayerGraph& graph, const std::vector<LayerCosts>& costs,
                              const FrontierRules& rules);

}  // namespace plumbline
