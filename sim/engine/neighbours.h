// Ops that slow each other down: what the devices of one machine compute at the same time.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/fair_share.h"
#include "sim/graph/op_graph.h"

namespace plumbline {

/// Keeps, for ops under way, the time that is left at full pace and the factor by which it
/// stretches now: that of its class for as many neighbours as compute, and of an update for as many
/// as update. Whenever an op of a machine starts or ends, those beside it take another pace. It
/// knows no clock and no queue: its user schedules an end for every change that it is told.
class Neighbours {
 public:
  using Change = FairShare::Change;

  /// The graph outlives it.
  explicit Neighbours(const OpGraph& graph);

  /// Whether `node` is an op whose start and end matter here: one that takes time, in a graph with
  /// slow-downs.
  bool concern(std::uint32_t node) const;

  /// `node` starts, with so much to do at full pace. Returns what changed; valid until the next
  /// call. Requires: concern(node).
  const std::vector<Change>& start(std::uint32_t node, Duration work, SimTime now);
  /// The end that was announced with `version` is due. Returns whether it is still true; then the
  /// op is over and changes() says what that did to the others.
  bool end(std::uint32_t node, std::uint32_t version, SimTime now);
  const std::vector<Change>& changes() const { return changes_; }

 private:
  struct Running {
    std::uint32_t node = 0;
    std::uint32_t version = 0;
    double left = 0;    ///< In ns at full pace, at `since`.
    double factor = 0;  ///< From `since` on.
    SimTime since;
  };

  std::vector<Running>& beside(std::uint32_t node) {
    return running_[graph_.machines[graph_.nodes[node].resource]];
  }
  bool is_update(const Running& one) const;
  /// While so many run, of which so many update; with this one.
  double factor_of(const Running& one, std::size_t running, std::size_t updates) const;
  void set_pace(std::vector<Running>& running, SimTime now);

  const OpGraph& graph_;
  std::vector<std::vector<Running>> running_;  ///< By machine.
  std::vector<Change> changes_;
  std::uint32_t next_version_ = 1;
};

}  // namespace plumbline
