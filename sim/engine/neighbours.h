// Ops that slow each other down, on devices of one machine that compute at the same time, and
// transfers that they slow down; ops that their device's own traffic slows down.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/engine/fair_share.h"
#include "sim/graph/op_graph.h"

namespace plumbline {

/// Keeps, for each running op, the remaining time at full pace and the factor by which it stretches
/// now. The factor is that of its class for the number of neighbours that compute; for an update,
/// also that for the number of neighbours that update. For a transfer it is that for the number of
/// devices that compute and are neither of its ends. When an op of a machine starts or ends, what
/// runs beside it changes its pace. Of OpGraph::overlap, traffic changes the pace of the ops on its
/// two devices: the larger factor of what is on its way there. The class knows no clock and no
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

  /// Whether ops of a node's devices take longer while it is under way.
  bool concerned_by(std::uint32_t node) const;
  /// Such a node starts, or ends. Returns the changes; valid until the next call.
  const std::vector<Change>& begin_traffic(std::uint32_t node, SimTime now);
  const std::vector<Change>& end_traffic(std::uint32_t node, SimTime now);

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
    std::vector<std::uint32_t> slots;  ///< Those with an op.
    std::vector<Running> transfers;
  };

  /// What runs on a device: an op that takes time, collectives and transfers.
  struct Device {
    std::optional<Running> op;
    std::uint32_t collectives = 0;
    std::uint32_t transfers = 0;
  };

  Machine& machine_of(std::uint32_t node) {
    return machines_[graph_.machines[graph_.sender(node)]];
  }
  bool is_compute_of(std::uint32_t node) const { return is_compute(graph_.activities[node].kind); }
  bool is_update(const Running& one) const;
  /// The factor by which a device's traffic stretches its op.
  double factor_of_traffic(const Device& device) const;
  const std::vector<Change>& change_traffic(std::uint32_t node, bool begins, SimTime now);
  /// The factor of a device's op while `running` ops run, `updates` of them updates; both counts
  /// include this op.
  double factor_of_op(const Device& device, std::size_t running, std::size_t updates) const;
  std::size_t updates_of(const Machine& machine) const;
  /// The factor of a transfer while `running` ops run on its machine.
  double factor_of_transfer(const Running& one, std::size_t running) const;
  /// Sets the pace of all that runs on a machine whose ops have changed.
  void set_all_paces(Machine& machine, SimTime now);
  /// Sets the pace of one, and notes the change if it is one.
  void set_pace(Running& one, double factor, SimTime now);

  const OpGraph& graph_;
  std::vector<Machine> machines_;
  std::vector<Device> devices_;  ///< By slot.
  std::vector<Change> changes_;
  std::uint32_t next_version_ = 1;
};

}  // namespace plumbline
