// Ops that slow each other down, on devices of one machine that compute at the same time, and
// transfers that they slow down.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/fair_share.h"
#include "sim/graph/op_graph.h"

namespace plumbline {

/// Keeps, for each running op, the remaining time at full pace and the factor by which it stretches
/// now. The factor is that of its class for the number of neighbours that compute; for an update,
/// also that for the number of neighbours that update. For a transfer it is that for the number of
/// devices that compute and are neither of its ends. When an op of a machine starts or ends, what
/// runs beside it changes its pace; a transfer changes nobody's. The class knows no clock and no
/// queue: its user schedules an end for every reported change.
class Neighbours {
 public:
  using Change = FairShare::Change;

  /// The graph must outlive the object.
  explicit Neighbours(const OpGraph& graph);

  /// Whether the start and end of `node` matter here: it is an op that takes time, in a graph with
  /// slow-downs, or a transfer that ops slow down.
  bool concern(std::uint32_t node) const;

  /// `node` starts; `work` is its time at full pace, at which a transfer goes beside no op. Returns
  /// the changes; valid until the next call. Requires: concern(node).
  const std::vector<Change>& start(std::uint32_t node, Duration work, SimTime now);
  /// The end that was announced with `version` is due. Returns whether it is still valid. If so,
  /// the op is over, and changes() has the changes of the others.
  bool end(std::uint32_t node, std::uint32_t version, SimTime now);
  const std::vector<Change>& changes() const { return changes_; }

 private:
  struct Running {
    std::uint32_t node = 0;
    std::uint32_t version = 0;
    double left = 0;    ///< Remaining ns at full pace, at `since`.
    double factor = 0;  ///< The factor from `since` on.
    SimTime since;
  };

  /// What runs on a machine.
  struct Machine {
    std::vector<Running> ops;
    std::vector<Running> transfers;
  };

  Machine& machine_of(std::uint32_t node) {
    return machines_[graph_.machines[graph_.sender(node)]];
  }
  bool is_compute_of(std::uint32_t node) const { return is_compute(graph_.activities[node].kind); }
  bool is_update(const Running& one) const;
  /// The factor of an op while `running` ops run, `updates` of them updates; both counts include
  /// this op.
  double factor_of_op(const Running& one, std::size_t running, std::size_t updates) const;
  /// The factor of a transfer while `running` ops run on its machine.
  double factor_of_transfer(const Running& one, std::size_t running) const;
  /// Sets the pace of all that runs on a machine whose ops have changed.
  void set_all_paces(Machine& machine, SimTime now);
  /// Sets the pace of one, and notes the change if it is one.
  void set_pace(Running& one, double factor, SimTime now);

  const OpGraph& graph_;
  std::vector<Machine> machines_;
  std::vector<bool> computes_;  ///< By slot: whether an op runs there that takes time.
  std::vector<Change> changes_;
  std::uint32_t next_version_ = 1;
};

}  // namespace plumbline
