// Every idle gap of a device, and its cause.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/engine/trace.h"
#include "sim/graph/op_graph.h"

namespace plumbline {

enum class IdleCause : std::uint8_t {
  fill,        ///< Before the first activity of a mini-batch; without a flush, of the next.
  drain,       ///< After the last one, until all devices have ended.
  dependency,  ///< An input that another device had not made yet.
  transfer,    ///< An input that was on its way, queueing included.
  all_reduce,  ///< Gradients of other replicas or copies, or weights that they updated.
  rendezvous,  ///< The other end of a blocking transfer.
  update,      ///< The updates of other devices.
  overhead,    ///< Time per iteration that belongs to no device; in a measured run, between ops.
};

/// All causes, in the order of reports.
inline constexpr IdleCause kIdleCauses[] = {
    IdleCause::fill,       IdleCause::drain,      IdleCause::dependency, IdleCause::transfer,
    IdleCause::all_reduce, IdleCause::rendezvous, IdleCause::update,     IdleCause::overhead};

/// The cause as reports write it: "all_reduce".
std::string_view name(IdleCause cause);

/// A time in which a device does nothing, for one cause. Never empty.
struct IdleGap {
  SimTime begin;
  SimTime end;
  IdleCause cause = IdleCause::fill;
  bool is_end =
      false;  ///< The gap leads to the end of a mini-batch, not to the device's next work.
};

/// The nodes that hold each slot's stream, in order.
std::vector<std::vector<std::uint32_t>> nodes_by_slot(const OpGraph& graph);

/// The time for which a node holds its stream or channel.
Duration held(const OpGraph& graph, const Trace& trace, std::uint32_t node);

/// The time of a device's stream, read in one pass over the graph.
struct StreamTimes {
  Duration busy{};
  std::optional<SimTime> first;  ///< Begin of its first activity.
  std::optional<SimTime> last;   ///< End of its last activity that took time.
  std::uint32_t last_node = 0;   ///< Its last node. Requires: `first`.
  std::array<Duration, std::size(kIdleCauses)> idle{};  ///< By cause.
};

/// The times of all slots up to `makespan`.
std::vector<StreamTimes> stream_times(const OpGraph& graph, const Trace& trace, SimTime makespan);

/// The gaps of one slot from 0 to `makespan`, ascending. Together with the slot's busy time they
/// cover the makespan exactly. `nodes` are the nodes of its stream from nodes_by_slot.
std::vector<IdleGap> idle_gaps(const OpGraph& graph, const Trace& trace,
                               const std::vector<std::uint32_t>& nodes, SimTime makespan);

}  // namespace plumbline
