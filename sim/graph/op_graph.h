// The graph of all activities of a run and their dependencies: ops, transfers, updates, in flat
// arrays.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/hardware/cluster.h"
#include "schedules/order/op.h"

namespace plumbline {

enum class ActivityKind : std::uint8_t {
  forward,
  backward,
  backward_input,
  backward_weight,
  /// A part of a B that is cut into buckets, or the F that it recomputes early. The last part is
  /// the B itself.
  backward_part,
  weight_part,          ///< The same of a W.
  forward_part,         ///< The same of an F, whose weights are gathered bucket by bucket.
  update,               ///< U: the optimizer's step of one stage.
  activation_transfer,  ///< The output of one stage on its way to the device of the next.
  gradient_transfer,    ///< The gradient on its way back.
  all_reduce,           ///< A hop of a ring: one member sends to the next one.
  reduce_scatter,       ///< The same, until each member has its share of the sums.
  all_gather,           ///< The same, until each member has the new weights of all.
  collective_step,      ///< The moment between two phases of a hierarchical collective.
  collective_begin,     ///< The moment at which all members have their input.
  collective_end,       ///< The moment at which all members have their result.
  flush,                ///< The moment at which all devices have ended the mini-batch.
  overhead,             ///< Time that belongs to no device; its end lets the next mini-batch start.
};

inline constexpr std::size_t kActivityKinds = static_cast<std::size_t>(ActivityKind::overhead) + 1;

constexpr bool is_op(ActivityKind kind) { return kind <= ActivityKind::backward_weight; }
constexpr bool is_compute(ActivityKind kind) { return kind <= ActivityKind::update; }
/// Whether it is a part of an op, but not the last part.
constexpr bool is_part(ActivityKind kind) {
  return kind >= ActivityKind::backward_part && kind <= ActivityKind::forward_part;
}
/// The kind of the parts of an F, B or W.
constexpr ActivityKind part_of(ActivityKind kind) {
  if (kind == ActivityKind::forward) return ActivityKind::forward_part;
  return kind == ActivityKind::backward ? ActivityKind::backward_part : ActivityKind::weight_part;
}
/// The kind of the op that a part belongs to; any other kind unchanged.
constexpr ActivityKind op_of(ActivityKind kind) {
  if (kind == ActivityKind::backward_part) return ActivityKind::backward;
  if (kind == ActivityKind::weight_part) return ActivityKind::backward_weight;
  return kind == ActivityKind::forward_part ? ActivityKind::forward : kind;
}
constexpr bool is_transfer(ActivityKind kind) {
  return kind == ActivityKind::activation_transfer || kind == ActivityKind::gradient_transfer;
}
/// Whether it is a hop of an all-reduce, or of one of its halves.
constexpr bool is_collective(ActivityKind kind) {
  return kind >= ActivityKind::all_reduce && kind <= ActivityKind::all_gather;
}
/// Whether it belongs to a device or a channel, so that pictures show it.
constexpr bool is_shown(ActivityKind kind) { return kind <= ActivityKind::all_gather; }

/// The activity of a node. A transfer has the stage and micro-batch of the op that it feeds.
/// Micro-batches are numbered through the run: mini-batch k begins at k x micro_batches. Updates
/// and collectives have the last micro-batch that they cover.
struct Activity {
  ActivityKind kind = ActivityKind::forward;
  StageId stage;
  MicroBatchId micro_batch;

  friend bool operator==(const Activity&, const Activity&) = default;
};

/// `2F0`, `2U0`; `recv 2F0` for the transfer that feeds it; `all-reduce 2`; `flush`, `overhead`.
std::string to_text(const Activity& activity);

/// The costs of one class of nodes. Many nodes share a class, so that other costs need only another
/// table.
struct Cost {
  Duration hold{};     ///< The time for which the resource is held.
  Duration latency{};  ///< The time after that until the result has arrived; nothing is held.
  /// For a transfer, the part of `hold` before bytes flow. A blocking transfer holds through its
  /// latency.
  Duration lead{};
  Bytes bytes;
  std::uint32_t slowdown =
      0;  ///< Index into OpGraph::slowdowns: of `hold` while neighbours compute.
  Duration
      hidden{};  ///< The time of an op's sending that its partner in a pair hides; not in `hold`.
  std::uint32_t sends =
      1;  ///< For a hop, its number of sends, one after the other; each is handed over.
  std::uint32_t beside_work =
      0;  ///< Index into OpGraph::beside_work: of a transfer's `hold` while other devices compute.

  friend bool operator==(const Cost&, const Cost&) = default;
};

/// An ordered pair of devices with one transfer at a time between them.
struct Channel {
  std::uint32_t from_slot = 0;
  std::uint32_t to_slot = 0;
  Path path;
};

/// The part of a node that evaluation reads: 16 bytes.
struct Node {
  std::uint32_t cost = 0;      ///< Index into OpGraph::costs.
  std::uint32_t resource = 0;  ///< The resource that it holds.
  std::uint32_t peer_resource =
      0;                    ///< The other stream of a blocking transfer; else `resource` again.
  std::uint32_t input = 0;  ///< The node whose result it waits for; OpGraph::size() = none.
};

/// The nodes whose results one node waits for besides `input`.
struct Join {
  std::uint32_t node = 0;
  std::vector<std::uint32_t> inputs;
};

/// The mini-batch boundaries of a synchronous run.
struct MiniBatch {
  std::uint32_t first = 0;  ///< The mini-batch has the nodes first..gate.
  std::uint32_t flush = 0;
  std::uint32_t reduced = 0;  ///< The moment at which all gradients are reduced as well.
  std::uint32_t updated = 0;  ///< The moment at which all have updated; the gate if they coincide.
  std::uint32_t gate = 0;     ///< The overhead node: its end is the end of the mini-batch.
};

/// A run with every order fixed. Invariants: every node comes after all nodes that it waits for.
/// The nodes of each resource come in the order in which they hold it. So one pass over the arrays
/// evaluates the graph. A dependency that the order of one device implies has no edge (an F before
/// its own B). The graph knows no clock and no queue.
struct OpGraph {
  static constexpr std::uint32_t kMaxNodes = std::numeric_limits<std::uint32_t>::max() / 4;
  /// The number of cost classes per stage: F, B, I, W and U. They come first in `costs`.
  static constexpr std::size_t kStageClasses = 5;
  /// The class of U; the other classes have the number of their OpKind.
  static constexpr std::uint32_t kUpdateClass = 4;

  std::vector<Node> nodes;
  std::vector<Activity> activities;  ///< Parallel to nodes.
  std::vector<Join> joins;           ///< Ascending by node.
  std::vector<Cost> costs;
  std::vector<MiniBatch> mini_batches;  ///< Empty in an asynchronous run.
  /// Factors of a `hold` while 0, 1, ... neighbours compute; the last factor holds for more
  /// neighbours. Entry 0 is empty: its nodes do not depend on neighbours.
  std::vector<std::vector<double>> slowdowns = {{}};
  /// Further factors of updates while 0, 1, ... neighbours update as well; the last factor holds
  /// for more. Empty: no such effect.
  std::vector<double> updates_at_once;

  /// Factors of a transfer's `hold` while 0, 1, ... devices of its machine compute that are neither
  /// of its ends; the last factor holds for more. Entry 0 is empty: its nodes do not depend on
  /// them.
  std::vector<std::vector<double>> beside_work = {{}};

  /// Further factors of an op's `hold` while its device sends or receives.
  OverlapSlowdown overlap{};

  /// How many times longer bytes take over these network cards than their links say. A transfer's
  /// own `hold` has that already; what transfers share does not.
  std::map<Card, double> slow_cards;

  /// Resources: first one in-order stream per slot, then one per channel, then the resources of
  /// moments, which belong to no device.
  std::vector<DeviceId> devices;        ///< One per slot, ascending.
  std::vector<std::uint32_t> machines;  ///< One per slot; devices of one machine are neighbours.
  std::vector<Channel> channels;
  std::uint32_t moments = 1;
  std::vector<std::vector<std::uint32_t>>
      stage_slots;  ///< Per stage, the slots of its replicas and copies.
  std::uint32_t copies_represented =
      1;                             ///< Copies of the pipeline that the written copy stands for.
  std::uint32_t written_copies = 1;  ///< Slot q belongs to copy q % written_copies.
  bool blocking = false;  ///< Transfers hold the streams of both ends; collectives never do.
  /// The devices of a synchronous run wait for each other before they update. If they do not, the
  /// run is one mini-batch, and each device begins the next one when its own updates are done.
  bool flushes = true;
  std::uint32_t micro_batches = 0;  ///< Micro-batches in the whole run.
  /// The nodes of two ops that their device runs at the same time. They stand one behind the other:
  /// the first waits for the inputs of both, and the consumers of either wait for the second.
  /// Ascending.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  Duration hand_over{};  ///< Time in the cost of each send of a transfer or a hop.

  std::uint32_t size() const { return static_cast<std::uint32_t>(nodes.size()); }
  std::uint32_t slots() const { return static_cast<std::uint32_t>(devices.size()); }
  std::uint32_t resources() const {
    return slots() + static_cast<std::uint32_t>(channels.size()) + moments;
  }
  bool asynchronous() const { return mini_batches.empty(); }
  /// The devices that hold a stage, in all copies.
  std::uint32_t members(std::uint32_t stage) const {
    return static_cast<std::uint32_t>(stage_slots[stage].size()) * copies_represented;
  }
  /// Whether the times of ops, or of transfers, depend on what neighbours do.
  bool has_slowdowns() const { return has_neighbours() || overlap.any(); }
  /// Whether they depend on what other devices compute.
  bool has_neighbours() const {
    return slowdowns.size() > 1 || !updates_at_once.empty() || beside_work.size() > 1;
  }
  const Cost& cost(std::uint32_t node) const { return costs[nodes[node].cost]; }
  /// The index in `costs` of a stage's F, B, I, W (numbered as OpKind) or U (kUpdateClass).
  static constexpr std::uint32_t class_of(StageId stage, std::size_t kind) {
    return static_cast<std::uint32_t>(stage.value * kStageClasses + kind);
  }
  const Cost& cost_of(StageId stage, std::size_t kind) const {
    return costs[class_of(stage, kind)];
  }
  /// Whether a node holds a channel: an overlapped transfer, a hop of a collective.
  bool holds_channel(std::uint32_t node) const {
    const std::uint32_t resource = nodes[node].resource;
    return resource >= slots() && resource < slots() + channels.size();
  }
  /// Requires: holds_channel(node).
  const Channel& channel(std::uint32_t node) const {
    return channels[nodes[node].resource - slots()];
  }
  /// The number of `hand_over`s in a node's cost: one for a transfer, one per send for a hop that
  /// carries bytes, else none.
  std::int64_t hand_overs(std::uint32_t node) const {
    const ActivityKind kind = activities[node].kind;
    if (is_collective(kind) && cost(node).bytes.count > 0) return cost(node).sends;
    return is_transfer(kind) ? 1 : 0;
  }
  /// The slots between which a transfer or a hop goes.
  std::uint32_t sender(std::uint32_t node) const {
    return holds_channel(node) ? channel(node).from_slot : nodes[node].resource;
  }
  std::uint32_t receiver(std::uint32_t node) const {
    return holds_channel(node) ? channel(node).to_slot : nodes[node].peer_resource;
  }
  /// The stages of each slot, ascending.
  std::vector<std::vector<std::uint32_t>> stages_by_slot() const;

  /// One entry per channel: whether a card on its path also carries another channel, so that rates
  /// change during a transfer.
  std::vector<bool> shared_channels() const;
  /// Whether the time of an activity depends on others that run at the same time, through shared
  /// cards or slow-down by neighbours. If not, the longest path is exact.
  bool rates_change() const;
};

/// One entry per node. For a part of an op, the node of the op itself, which is its last part; for
/// any other node, the node itself.
std::vector<std::uint32_t> ops_of_parts(const OpGraph& graph);

/// One entry per node: the node whose end is also its end, which is the second of its pair, or
/// itself.
std::vector<std::uint32_t> ends_of_pairs(const OpGraph& graph);

/// One entry per node. For an op that is cut, the node of its first part; for any other node, the
/// node itself.
std::vector<std::uint32_t> first_parts(const OpGraph& graph);

/// One entry per node: whether it is the F that a B recomputes early. Requires: a graph of a run
/// that recomputes early.
std::vector<bool> early_forwards(const OpGraph& graph);

/// The join of each node; null = none. The pointers are valid as long as the graph's joins.
std::vector<const Join*> joins_by_node(const OpGraph& graph);

}  // namespace plumbline
