// Lowering walks the issue order once per mini-batch and appends nodes.
// SPDX-License-Identifier: MIT
#include "schedules/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "models/bug.h"

namespace plumbline {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kKinds = 5;  ///< F, B, I, W, U: the cost classes of one stage.

class Lowering {
 public:
  Lowering(const Schedule& schedule, const StageCosts& costs, const std::vector<DeviceId>& devices,
           const Cluster& cluster, const LoweringOptions& options)
      : schedule_(schedule),
        shape_(schedule.shape),
        stage_costs_(costs),
        cluster_(cluster),
        options_(options) {
    graph_.devices = devices;
    graph_.blocking = options.blocking;
    graph_.micro_batches = shape_.micro_batches * options.mini_batches;
    for (const auto& slots : shape_.stage_slots) graph_.stage_slot.push_back(slots.front());
    add_compute_costs();
    add_channels();
  }

  OpGraph build() {
    reserve();
    std::uint32_t gate = kNone;
    for (std::uint32_t k = 0; k < options_.mini_batches; ++k) {
      const std::uint32_t first = graph_.size();
      first_micro_batch_ = k * shape_.micro_batches;
      std::fill(produced_.begin(), produced_.end(), kNone);
      add_ops(gate);
      if (schedule_.asynchronous) break;
      gate = add_flush_and_updates(first);
    }
    for (Node& node : graph_.nodes) {
      if (node.after == kNone) node.after = graph_.size();
    }
    return std::move(graph_);
  }

 private:
  /// The two directions in which a boundary is crossed.
  enum Direction : std::size_t { up = 0, down = 1 };

  /// A boundary between stage s and s + 1 on two devices.
  struct Boundary {
    bool crosses = false;
    std::array<std::uint32_t, 2> channel{};
    std::array<std::uint32_t, 2> cost{};
  };

  void add_compute_costs() {
    const Duration per_op = options_.overheads.per_op;
    for (const StageCost& stage : stage_costs_.stages) {
      const Duration again = options_.recompute ? stage.forward : Duration{};
      for (const Duration time :
           {stage.forward, stage.backward + again, stage.backward_input + again,
            stage.backward_weight, stage.update}) {
        graph_.costs.push_back({time + per_op, {}, {}, {}});
      }
    }
    flush_cost_ = static_cast<std::uint32_t>(graph_.costs.size());
    graph_.costs.push_back({});
    overhead_cost_ = flush_cost_ + 1;
    graph_.costs.push_back({options_.overheads.per_iteration, {}, {}, {}});
  }

  void add_channels() {
    boundaries_.resize(shape_.stages());
    for (std::uint32_t s = 0; s + 1 < shape_.stages(); ++s) {
      const std::uint32_t low = graph_.stage_slot[s];
      const std::uint32_t high = graph_.stage_slot[s + 1];
      if (low == high) continue;
      Boundary& boundary = boundaries_[s];
      boundary.crosses = true;
      boundary.channel = {channel(low, high), channel(high, low)};
      for (const Direction direction : {up, down}) {
        boundary.cost[direction] = static_cast<std::uint32_t>(graph_.costs.size());
        graph_.costs.push_back(
            transfer_cost(graph_.channels[boundary.channel[direction]], stage_costs_.crossing(s)));
      }
    }
    host_ = graph_.resources() - 1;
  }

  std::uint32_t channel(std::uint32_t from, std::uint32_t to) {
    auto& channels = graph_.channels;
    const auto [found, is_new] =
        channel_index_.try_emplace({from, to}, static_cast<std::uint32_t>(channels.size()));
    if (!is_new) return found->second;
    channels.push_back({from, to, cluster_.path(graph_.devices[from], graph_.devices[to])});
    return static_cast<std::uint32_t>(channels.size() - 1);
  }

  Cost transfer_cost(const Channel& channel, Bytes bytes) const {
    const Link& link = channel.path.link;
    const Duration flow = link.bandwidth ? transfer_time(bytes, *link.bandwidth) : Duration{};
    const Duration latency = link.latency + options_.overheads.hand_over;
    if (options_.blocking) return {latency + flow, {}, latency, bytes};
    return {flow, latency, {}, bytes};
  }

  void reserve() {
    std::size_t crossings = 0;
    for (const Boundary& boundary : boundaries_) crossings += boundary.crosses ? 2 : 0;
    const std::size_t ops = schedule_.issue_order.size();
    const std::size_t updates = schedule_.asynchronous ? ops / 2 : shape_.stages();
    const std::size_t nodes =
        (ops + crossings * shape_.micro_batches + updates + 2) * options_.mini_batches;
    graph_.nodes.reserve(nodes);
    graph_.activities.reserve(nodes);
    produced_.assign(std::size_t{2} * shape_.stages() * shape_.micro_batches, kNone);
  }

  std::uint32_t add(Activity activity, std::uint32_t cost, std::uint32_t resource,
                    std::uint32_t second, std::uint32_t after) {
    graph_.nodes.push_back({cost, resource, second, after});
    graph_.activities.push_back(activity);
    return graph_.size() - 1;
  }

  /// The node that brings the output of F (up) or the gradient of B or I (down) of stage s to where
  /// it is consumed: overlapped the transfer, blocking the producer until its transfer stands in
  /// the order.
  std::uint32_t& produced(Direction direction, std::uint32_t stage, std::uint32_t micro_batch) {
    return produced_[(std::size_t{direction} * shape_.stages() + stage) * shape_.micro_batches +
                     micro_batch];
  }

  void add_ops(std::uint32_t gate) {
    const std::vector<Op>& order = schedule_.issue_order;
    std::vector<bool> started(graph_.slots(), false);
    for (std::size_t wave = 0; wave < schedule_.waves.size(); ++wave) {
      const std::size_t begin = schedule_.waves[wave];
      const std::size_t end =
          wave + 1 < schedule_.waves.size() ? schedule_.waves[wave + 1] : order.size();
      if (options_.blocking) {
        for (std::size_t i = begin; i < end; ++i) add_blocking_transfer(order[i]);
      }
      for (std::size_t i = begin; i < end; ++i) {
        const Op& op = order[i];
        const std::uint32_t slot = graph_.stage_slot[op.stage.value];
        std::uint32_t after = input_of(op);
        if (after == kNone && !started[slot]) after = gate;
        started[slot] = true;
        add_op(op, slot, after);
      }
    }
  }

  /// The boundary that `op` gets its input over, and the direction; nothing where the input is at
  /// hand.
  struct Crossing {
    const Boundary* boundary;
    Direction direction;
    std::uint32_t producer;  ///< Stage.
  };
  std::optional<Crossing> crossing_into(const Op& op) const {
    const std::uint32_t s = op.stage.value;
    if (op.kind == OpKind::forward) {
      if (s == 0 || !boundaries_[s - 1].crosses) return std::nullopt;
      return Crossing{&boundaries_[s - 1], up, s - 1};
    }
    if (op.kind == OpKind::backward_weight || s + 1 == shape_.stages() || !boundaries_[s].crosses)
      return std::nullopt;
    return Crossing{&boundaries_[s], down, s + 1};
  }

  std::uint32_t input_of(const Op& op) {
    const auto crossing = crossing_into(op);
    return crossing ? produced(crossing->direction, crossing->producer, op.micro_batch.value)
                    : kNone;
  }

  Activity transfer_activity(Direction direction, std::uint32_t consumer,
                             std::uint32_t micro_batch) const {
    return {direction == up ? ActivityKind::activation_transfer : ActivityKind::gradient_transfer,
            {consumer},
            {first_micro_batch_ + micro_batch}};
  }

  void add_blocking_transfer(const Op& op) {
    const auto crossing = crossing_into(op);
    if (!crossing) return;
    const Channel& channel = graph_.channels[crossing->boundary->channel[crossing->direction]];
    std::uint32_t& data = produced(crossing->direction, crossing->producer, op.micro_batch.value);
    data = add(transfer_activity(crossing->direction, op.stage.value, op.micro_batch.value),
               crossing->boundary->cost[crossing->direction], channel.from_slot, channel.to_slot,
               data);
  }

  void add_op(const Op& op, std::uint32_t slot, std::uint32_t after) {
    const std::uint32_t s = op.stage.value;
    const std::uint32_t m = op.micro_batch.value;
    const auto kind = static_cast<std::size_t>(op.kind);
    const auto first_cost = static_cast<std::uint32_t>(s * kKinds);
    const std::uint32_t node =
        add({static_cast<ActivityKind>(op.kind), op.stage, {first_micro_batch_ + m}},
            first_cost + static_cast<std::uint32_t>(kind), slot, slot, after);
    const bool ends_backward = op.kind == OpKind::backward || op.kind == OpKind::backward_weight;
    if (op.kind == OpKind::forward) {
      if (boundaries_[s].crosses) send(up, s, s + 1, s, m, node);
    } else if (op.kind != OpKind::backward_weight && s > 0 && boundaries_[s - 1].crosses) {
      send(down, s, s - 1, s - 1, m, node);
    }
    if (schedule_.asynchronous && ends_backward) {
      add({ActivityKind::update, op.stage, {first_micro_batch_ + m}}, first_cost + 4, slot, slot,
          kNone);
    }
  }

  void send(Direction direction, std::uint32_t producer, std::uint32_t consumer,
            std::uint32_t boundary_index, std::uint32_t micro_batch, std::uint32_t node) {
    const Boundary& boundary = boundaries_[boundary_index];
    if (!options_.blocking) {
      const std::uint32_t resource = graph_.slots() + boundary.channel[direction];
      node = add(transfer_activity(direction, consumer, micro_batch), boundary.cost[direction],
                 resource, resource, node);
    }
    produced(direction, producer, micro_batch) = node;
  }

  /// Returns the gate: the node whose end is the end of the mini-batch.
  std::uint32_t add_flush_and_updates(std::uint32_t first) {
    std::vector<std::uint32_t> last(graph_.slots(), kNone);
    for (std::uint32_t node = first; node < graph_.size(); ++node) {
      if (is_op(graph_.activities[node].kind)) last[graph_.nodes[node].resource] = node;
    }
    const MicroBatchId last_micro_batch{first_micro_batch_ + shape_.micro_batches - 1};
    MiniBatch mini_batch{.first = first, .flush = {}, .gate = {}};
    mini_batch.flush =
        add({ActivityKind::flush, {}, last_micro_batch}, flush_cost_, host_, host_, kNone);
    graph_.joins.push_back({mini_batch.flush, std::move(last)});
    Join gate{0, {}};
    for (std::uint32_t s = 0; s < shape_.stages(); ++s) {
      const std::uint32_t slot = graph_.stage_slot[s];
      gate.after.push_back(add({ActivityKind::update, {s}, last_micro_batch},
                               static_cast<std::uint32_t>(s * kKinds + 4), slot, slot,
                               mini_batch.flush));
    }
    mini_batch.gate =
        add({ActivityKind::overhead, {}, last_micro_batch}, overhead_cost_, host_, host_, kNone);
    gate.node = mini_batch.gate;
    graph_.joins.push_back(std::move(gate));
    graph_.mini_batches.push_back(mini_batch);
    return mini_batch.gate;
  }

  const Schedule& schedule_;
  const PipelineShape& shape_;
  const StageCosts& stage_costs_;
  const Cluster& cluster_;
  const LoweringOptions& options_;
  OpGraph graph_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t>
      channel_index_;                 ///< By its two slots.
  std::vector<Boundary> boundaries_;  ///< Entry s stands between stage s and s + 1.
  std::vector<std::uint32_t> produced_;
  std::uint32_t first_micro_batch_ = 0;
  std::uint32_t flush_cost_ = 0;
  std::uint32_t overhead_cost_ = 0;
  std::uint32_t host_ = 0;
};

/// The run cannot last longer than all its activities one after the other.
std::optional<Diagnostic> refuse_overflow(const OpGraph& graph, const Mark& mark) {
  constexpr double most = 4e18;  // ns; 64 bits hold 9.2e18
  double sum = 0;
  double bytes = 0;
  for (const Node& node : graph.nodes) {
    const Cost& cost = graph.costs[node.cost];
    sum += static_cast<double>(cost.hold.count()) + static_cast<double>(cost.latency.count());
  }
  for (const Node& node : graph.nodes)
    bytes += static_cast<double>(graph.costs[node.cost].bytes.count);
  if (bytes >= most) {
    return input_error(mark, "the transfers add up to more bytes than 64 bits hold",
                       "make the outputs or the number of micro-batches smaller");
  }
  if (sum < most) return std::nullopt;
  return input_error(
      mark, "the run could last longer than 120 years, more than 64 bits of nanoseconds hold",
      "make the times or the number of micro-batches smaller");
}

}  // namespace

Result<OpGraph> lower(const Schedule& schedule, const StageCosts& costs,
                      const std::vector<DeviceId>& devices, const Cluster& cluster,
                      const LoweringOptions& options, const Mark& mark) {
  PLUMBLINE_CHECK(
      costs.stages.size() == schedule.shape.stages() && devices.size() == schedule.shape.slots,
      costs.stages.size(), devices.size());
  const double most_nodes =
      (2.5 * static_cast<double>(schedule.issue_order.size()) + schedule.shape.stages() + 2) *
      options.mini_batches;
  if (most_nodes > OpGraph::kMostNodes) {
    return input_error(
        mark,
        fmt::format(
            "the run has about {:.0f} ops and transfers, more than the {} that are simulated",
            most_nodes, OpGraph::kMostNodes),
        "make micro_batches, mini_batches or the number of stages smaller");
  }
  OpGraph graph = Lowering(schedule, costs, devices, cluster, options).build();
  if (auto refused = refuse_overflow(graph, mark)) return *refused;
  return graph;
}

}  // namespace plumbline
