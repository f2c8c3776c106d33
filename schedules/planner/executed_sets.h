// Sets of executed layers as rows of bits, and their growth along a layer graph.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "models/profile/profile.h"
#include "schedules/planner/frontiers.h"

namespace plumbline {

/// Bit i of a row of 64-bit words stands for the layer at position i of the topological order.
using LayerRow = std::vector<std::uint64_t>;

inline bool has_bit(const std::uint64_t* row, std::uint32_t bit) {
  return (row[bit / 64] >> (bit % 64) & 1U) != 0;
}

inline void set_bit(std::uint64_t* row, std::uint32_t bit) {
  row[bit / 64] |= std::uint64_t{1} << (bit % 64);
}

/// The layer graph by positions in its topological order, with the costs of cuts.
struct LayerPositions {
  std::vector<LayerId> order;
  std::vector<std::vector<std::uint32_t>> producers, consumers;  ///< Ascending.
  std::vector<std::int64_t> output;
  std::vector<std::int64_t> time;
  std::vector<bool> is_free;  ///< See FrontierRules.
  std::uint32_t words = 0;    ///< 64-bit words of a row.

  std::uint32_t size() const { return static_cast<std::uint32_t>(order.size()); }
};

/// Requires: no cycle; one cost a layer.
LayerPositions positions_of(const LayerGraph& graph, const std::vector<LayerCosts>& costs,
                            const FrontierRules& rules = {});

/// One executed set on its way through the graph.
struct ExecutedSet {
  LayerRow row;
  std::vector<std::uint32_t> ready;  ///< Not executed, but all producers are; ascending.

  /// Nothing is executed.
  static ExecutedSet start(const LayerPositions& graph);

  /// Executes one layer. Requires: it is ready.
  void execute(const LayerPositions& graph, std::uint32_t layer);

  /// The change in the bytes that cross the cut when a ready layer is executed.
  std::int64_t cut_bytes_change(const LayerPositions& graph, std::uint32_t layer) const;

  /// Executes every free layer that does not raise the bytes that cross the cut. Calls `executed`
  /// with the change in bytes of each. This change can only fall as more layers are executed. So
  /// the result does not depend on the order, and larger sets stay larger.
  template <class Executed>
  void close(const LayerPositions& graph, const Executed& executed) {
    for (bool changed = true; changed;) {
      changed = false;
      for (const std::uint32_t layer : ready) {
        if (!graph.is_free[layer]) continue;
        const std::int64_t change = cut_bytes_change(graph, layer);
        if (change > 0) continue;
        execute(graph, layer);
        executed(change);
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
  std::pair<std::uint32_t, bool> insert(const LayerRow& row);

 private:
  std::size_t find(const std::uint64_t* wanted) const;
  void grow();

  std::uint32_t words_;
  std::uint32_t size_ = 0;
  std::vector<std::uint64_t> rows_;
  std::vector<std::uint32_t> slots_;  ///< Index + 1; 0 = empty.
};

}  // namespace plumbline
