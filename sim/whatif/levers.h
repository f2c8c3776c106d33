// Levers: the times of a graph's ops and links that a sensitivity may change.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/engine/compiled_graph.h"
#include "sim/prediction/iteration_clock.h"
#include "sim/whatif/sensitivity.h"

namespace plumbline {

/// A table entry that a sensitivity makes shorter, and the most that it can take away.
struct LeverPart {
  bool is_latency = false;
  std::uint32_t entry = 0;
  std::int64_t weight = 0;
};

/// A sensitivity, and the table entries that it changes.
struct Lever {
  Sensitivity sensitivity;
  std::vector<LeverPart> parts;
  std::int64_t unit = 1;  ///< The greatest number that divides all weights.
};

/// Sets the gain of a lever. `slope` is the time that the timed length loses for the whole lever.
void settle(Sensitivity& sensitivity, double slope, const IterationClock& clock);

/// The lever that gains the most comes first.
void sort_by_gain(std::vector<Lever*>& levers);

/// The tables of a graph with an entry for each kind of op of each stage and for each link, and the
/// levers on them.
class Levers {
 public:
  explicit Levers(const Outcome& outcome);

  const CostIndex& index() const { return index_; }
  std::vector<Lever>& all() { return levers_; }

  /// The levers that change an activity.
  std::vector<std::size_t> of(std::uint32_t node) const;

 private:
  /// Kind, stage or sender, receiver; kEvery for all of a kind.
  using Key = std::tuple<SensitivityKind, std::uint32_t, std::uint32_t>;
  static constexpr std::uint32_t kEvery = ~std::uint32_t{0};

  void add_op(std::uint32_t node);
  void count_links();

  /// Drops the lever for all of a kind where the kind has only one other lever. For example, every
  /// F of a run with one stage is that stage's F.
  void drop_only_ones();

  /// The time of a whole op, the longest of several. Ops may be cut into parts, one per bucket, and
  /// slices may differ from their mean.
  Duration whole_op(const Lever& lever) const;

  /// Adds the levers of a transfer. Links of equal cost share a class of cost, so each link gets
  /// its own table entries.
  void add_transfer(std::uint32_t node);

  /// The link that stands for all links in the same place: the first that was seen. See
  /// Sensitivity::links.
  std::pair<std::uint32_t, std::uint32_t> link_for(std::uint32_t a, std::uint32_t b);

  void add(const Key& key, bool is_latency, std::uint32_t entry, Duration time);
  void add_to(const Key& key, bool is_latency, std::uint32_t entry, Duration time);

  const OpGraph& graph_;
  const Cluster& cluster_;
  std::uint32_t copies_ = 1;
  CostIndex index_;
  /// The links in the same place. The key: the devices of sender and receiver within a copy, the
  /// level that joins them, and whether both are in one copy.
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::size_t, bool>,
           std::vector<std::pair<std::uint32_t, std::uint32_t>>>
      alike_;
  std::vector<Lever> levers_;
  std::map<Key, std::size_t> by_key_;
  std::multimap<std::pair<bool, std::uint32_t>, std::size_t> by_entry_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> own_entries_[2];
};

}  // namespace plumbline
