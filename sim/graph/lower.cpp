// Lowering walks the issue order once per mini-batch (SynchronousRun), or once through the whole
// stream.
//
// SPDX-License-Identifier: MIT
#include "sim/graph/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "base/bug.h"
#include "schedules/order/waves.h"
#include "sim/graph/graph_writer.h"
#include "sim/graph/synchronous_run.h"

namespace plumbline {
namespace {

constexpr std::uint32_t kNone = GraphWriter::kNone;

/// One long stream with updates in between. If an update waits for other replicas, an op after it
/// may wait for nodes that come later in the issue order. Such an op is postponed until these nodes
/// are written.
class AsynchronousRun {
 public:
  AsynchronousRun(const Schedule& schedule, const RunRules& options, GraphWriter& writer)
      : schedule_(schedule),
        shape_(schedule.shape),
        options_(options),
        writer_(writer),
        waiting_(writer.graph().slots()),
        due_(writer.graph().slots()) {
    for (const auto& slots : shape_.stage_slots) {
      stages_.push_back({std::vector<std::vector<std::uint32_t>>(slots.size()), {}, {}});
      stages_.back().updates.assign(slots.size(), 0);
    }
  }

  /// Writes the run. Returns whether all ops could be written: false if updates wait for each
  /// other.
  bool write() {
    const std::vector<Op>& order = schedule_.issue_order;
    writer_.begin_mini_batch(0);
    each_wave(schedule_, [&](std::size_t begin, std::size_t end) {
      if (options_.blocking) {
        for (std::size_t i = begin; i < end; ++i) write_blocking_transfer(order[i]);
      }
      for (std::size_t i = begin; i < end; ++i) {
        const std::uint32_t slot = shape_.slot(order[i].stage, order[i].micro_batch);
        if (!waiting_[slot].empty() || !try_write(order[i], slot)) {
          waiting_[slot].push_back(order[i]);
          ++put_off_;
        }
      }
      while (put_off_ > 0 && write_waiting()) {
      }
    });
    if (put_off_ > 0) return false;
    write_last_updates();
    return true;
  }

 private:
  /// The rounds of one stage.
  struct StageRounds {
    std::vector<std::vector<std::uint32_t>> backwards;  ///< The nodes, per replica.
    std::vector<std::uint32_t> reduced;                 ///< The end of the all-reduce, per round.
    std::vector<std::uint32_t> updates;  ///< The number of updates so far, per replica.
  };

  /// An update that a slot must run before its next op.
  struct Update {
    StageId stage;
    std::uint32_t round;
    std::uint32_t replica;
  };

  std::uint32_t replicas(StageId stage) const {
    return static_cast<std::uint32_t>(shape_.stage_slots[stage.value].size());
  }

  void write_blocking_transfer(const Op& op) {
    if (writer_.has_input(op, 0)) {
      writer_.add_transfer_to(op, 0);
    } else {
      late_transfers_.push_back(op);
    }
  }

  bool try_write(const Op& op, std::uint32_t slot) {
    if (!writer_.has_input(op, 0)) return false;
    for (const Update& update : due_[slot]) {
      if (update.round >= stages_[update.stage.value].reduced.size()) return false;
    }
    for (const Update& update : due_[slot]) write_update(update);
    due_[slot].clear();
    if (const auto late = std::find(late_transfers_.begin(), late_transfers_.end(), op);
        late != late_transfers_.end()) {
      writer_.add_transfer_to(op, 0);
      late_transfers_.erase(late);
    }
    const std::uint32_t node = writer_.add_op(op, 0, writer_.input_of(op, 0));
    if (ends_backward(op.kind)) end_backward(op, slot, node);
    return true;
  }

  /// Writes the ops that no longer have to wait. Returns whether there were any.
  bool write_waiting() {
    bool any = false;
    for (std::uint32_t slot = 0; slot < waiting_.size(); ++slot) {
      while (!waiting_[slot].empty() && try_write(waiting_[slot].front(), slot)) {
        waiting_[slot].pop_front();
        --put_off_;
        any = true;
      }
    }
    return any;
  }

  void end_backward(const Op& op, std::uint32_t slot, std::uint32_t node) {
    const std::uint32_t r = replicas(op.stage);
    const std::uint32_t m = op.micro_batch.value;
    StageRounds& stage = stages_[op.stage.value];
    auto& own = stage.backwards[m % r];
    const auto round = round_of_update(options_.updates, r, static_cast<std::uint32_t>(own.size()));
    own.push_back(node);
    if (r == 1) {
      if (round) writer_.add_update(op.stage, m, slot, kNone);
      return;
    }
    // The all-reduces of a stage go round by round.
    const std::uint32_t length = options_.updates.round_length(r);
    while (stage.reduced.size() < rounds(r) && is_made(stage, length / r)) {
      const std::size_t last = (stage.reduced.size() + 1) * (length / r) - 1;
      std::vector<std::uint32_t> ready;
      ready.reserve(r);
      for (const auto& of_replica : stage.backwards) ready.push_back(of_replica[last]);
      const auto& reduction = writer_.wiring().reductions(op.stage).front();
      const std::uint32_t micro_batch = last_micro_batch(op.stage, last);
      stage.reduced.push_back(
          writer_.add_collective(reduction, op.stage, micro_batch, std::move(ready)).last);
    }
    if (round && *round < rounds(r)) due_[slot].push_back({op.stage, *round, m % r});
  }

  /// The last micro-batch among the replicas' backwards with number `backward`.
  std::uint32_t last_micro_batch(StageId stage, std::size_t backward) const {
    return static_cast<std::uint32_t>(backward + 1) * replicas(stage) - 1;
  }

  /// Whether every replica has ended its `own` backwards of the next round.
  static bool is_made(const StageRounds& stage, std::uint32_t own) {
    return std::all_of(stage.backwards.begin(), stage.backwards.end(), [&](const auto& nodes) {
      return nodes.size() >= (stage.reduced.size() + 1) * own;
    });
  }

  /// The number of complete rounds. An incomplete last round is never reduced.
  std::uint32_t rounds(std::uint32_t r) const {
    return shape_.micro_batches / options_.updates.round_length(r);
  }

  void write_update(const Update& update) {
    StageRounds& stage = stages_[update.stage.value];
    const std::uint32_t r = replicas(update.stage);
    const std::uint32_t length = options_.updates.round_length(r);
    writer_.add_update(update.stage, (update.round + 1) * length - 1,
                       shape_.stage_slots[update.stage.value][update.replica],
                       stage.reduced[update.round]);
    ++stage.updates[update.replica];
  }

  /// Writes the updates that the lag leaves after the last op.
  void write_last_updates() {
    for (std::uint32_t s = 0; s < shape_.stages(); ++s) {
      const std::uint32_t r = replicas({s});
      if (r == 1) continue;
      for (std::uint32_t replica = 0; replica < r; ++replica) {
        while (stages_[s].updates[replica] < rounds(r))
          write_update({{s}, stages_[s].updates[replica], replica});
      }
    }
  }

  const Schedule& schedule_;
  const PipelineShape& shape_;
  const RunRules& options_;
  GraphWriter& writer_;
  std::vector<StageRounds> stages_;
  std::vector<std::deque<Op>> waiting_;  ///< Postponed ops, per slot.
  std::vector<std::vector<Update>> due_;
  std::vector<Op> late_transfers_;  ///< Blocking transfers with a postponed producer.
  std::size_t put_off_ = 0;
};

/// An upper bound of the number of nodes, close for common runs: ops, the transfers between stages,
/// updates, all-reduces.
double max_nodes_of(const Schedule& schedule, const StageCosts& costs, const RunRules& options) {
  const PipelineShape& shape = schedule.shape;
  double crossings = 0;
  for (std::uint32_t s = 0; s + 1 < shape.stages(); ++s)
    crossings += shape.stage_slots[s] == shape.stage_slots[s + 1] ? 0 : 2;
  double reducing = 2;  // flush and gate
  for (std::uint32_t s = 0; s < shape.stages(); ++s) {
    const double members =
        static_cast<double>(shape.stage_slots[s].size()) * options.written_copies();
    // Moments and hops, including the hops of groups that devices stand for.
    const double phases = options.sharing.degree > 0 ? 2 : 1;
    const double ring =
        phases * (members + 1) + 1 + (options.sharing.state >= Sharded::gradients ? members : 0);
    const double buckets = static_cast<double>(costs.stages[s].buckets.size()) + 1;
    const double rounds = schedule.asynchronous ? shape.micro_batches / members + 1 : 1;
    reducing += rounds * members + (members > 1 || buckets > 1 ? rounds * ring * buckets : 0) + 1;
    reducing += 2 * members * (buckets - 1);  // parts of a forward and a backward
    if (options.sharing.state >= Sharded::optimizer) reducing += ring * buckets + 1;
    if (options.sharing.reduces_each_backward() || options.sharing.gathers_passes()) {
      // Per micro-batch and bucket: parts of F, B and W, two gathers and a reduction.
      reducing += shape.micro_batches * (buckets - 1) * (3 * members + 3 * ring);
    }
    if (options.recompute_early) reducing += shape.micro_batches * options.written_copies();
  }
  for (const TiedTable& table : costs.tied) {
    double members = 0;
    for (const std::uint32_t stage : table.stages)
      members += static_cast<double>(shape.stage_slots[stage].size());
    reducing += (members + 2) * options.written_copies();
  }
  return options.mini_batches *
         (options.written_copies() *
              (static_cast<double>(schedule.issue_order.size()) + crossings * shape.micro_batches) +
          reducing);
}

}  // namespace

std::optional<Diagnostic> check_overflow(const OpGraph& graph, const Mark& mark) {
  constexpr double max = 4e18;  // ns; 64 bits hold 9.2e18
  double sum = 0;
  double bytes = 0;
  const double at_once = graph.updates_at_once.empty()
                             ? 1
                             : std::max(1.0, *std::max_element(graph.updates_at_once.begin(),
                                                               graph.updates_at_once.end()));
  for (const Node& node : graph.nodes) {
    const Cost& cost = graph.costs[node.cost];
    const auto largest = [](const std::vector<double>& factors) {
      return factors.empty() ? 1 : std::max(1.0, *std::max_element(factors.begin(), factors.end()));
    };
    const double slowest = largest(graph.slowdowns[cost.slowdown]) *
                           largest(graph.beside_work[cost.beside_work]) *
                           std::max(graph.overlap.collectives, graph.overlap.transfers);
    sum += at_once * slowest * static_cast<double>(cost.hold.count()) +
           static_cast<double>(cost.latency.count());
  }
  for (const Node& node : graph.nodes)
    bytes += static_cast<double>(graph.costs[node.cost].bytes.count);
  if (bytes >= max) {
    return input_error(mark, "the transfers add up to more bytes than 64 bits hold",
                       "make the outputs or the number of micro-batches smaller");
  }
  if (sum < max) return std::nullopt;
  return input_error(
      mark, "the run could last longer than 120 years, more than 64 bits of nanoseconds hold",
      "make the times or the number of micro-batches smaller");
}

Result<OpGraph> lower(const Schedule& schedule, const StageCosts& costs,
                      const std::vector<DeviceId>& devices, const Cluster& cluster,
                      const RunRules& options, const Mark& mark) {
  PLUMBLINE_CHECK(
      costs.stages.size() == schedule.shape.stages() && devices.size() == schedule.shape.slots,
      costs.stages.size(), devices.size());
  PLUMBLINE_CHECK(
      (options.copies == 1 && options.sharing.state == Sharded::nothing) || !schedule.asynchronous,
      options.copies);
  const double max_nodes = max_nodes_of(schedule, costs, options);
  if (max_nodes > OpGraph::kMaxNodes) {
    return input_error(
        mark,
        fmt::format(
            "the run has about {:.0f} ops and transfers, more than the {} that are simulated",
            max_nodes, OpGraph::kMaxNodes),
        "make micro_batches, mini_batches or the number of stages smaller");
  }
  const bool sends_at_once = !options.blocking && schedule.transfers.empty();
  GraphWriter writer(schedule.shape, costs, devices, cluster, options, sends_at_once);
  writer.reserve(static_cast<std::size_t>(max_nodes));
  if (!schedule.asynchronous) {
    SynchronousRun(schedule, costs, options, writer).write();
  } else if (!AsynchronousRun(schedule, options, writer).write()) {
    Diagnostic stuck = input_error(mark, "the updates of replicated stages wait for each other",
                                   "schedule.update_lag: 1, or another plan.warm_up");
    stuck.fault = Fault::infeasible;
    return stuck;
  }
  OpGraph graph = writer.take();
  if (auto refused = check_overflow(graph, mark)) return *refused;
  return graph;
}

}  // namespace plumbline
