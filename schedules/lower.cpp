// Lowering walks the issue order once per mini-batch, or once through the whole stream.
// SPDX-License-Identifier: MIT
#include "schedules/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "models/bug.h"
#include "schedules/graph_writer.h"

namespace plumbline {
namespace {

constexpr std::uint32_t kNone = GraphWriter::kNone;

bool ends_backward(OpKind kind) {
  return kind == OpKind::backward || kind == OpKind::backward_weight;
}

/// Calls `visit(begin, end)` for each wave: a range of the issue order.
template <class Visit>
void each_wave(const Schedule& schedule, Visit&& visit) {
  for (std::size_t wave = 0; wave < schedule.waves.size(); ++wave) {
    visit(schedule.waves[wave], wave + 1 < schedule.waves.size() ? schedule.waves[wave + 1]
                                                                 : schedule.issue_order.size());
  }
}

/// Which ops of an order are the first that need a stage's weights on a device, and the last that
/// make its gradients there.
class StageEnds {
 public:
  explicit StageEnds(const Schedule& schedule)
      : first_(schedule.issue_order.size(), false), last_(schedule.issue_order.size(), false) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> last;  // by stage, slot
    std::set<std::pair<std::uint32_t, std::uint32_t>> begun;
    for (std::size_t i = 0; i < schedule.issue_order.size(); ++i) {
      const Op& op = schedule.issue_order[i];
      const std::pair place(op.stage.value, schedule.shape.slot(op.stage, op.micro_batch));
      if (ends_backward(op.kind)) last[place] = i;
      if (op.kind == OpKind::forward && begun.insert(place).second) {
        first_[i] = true;
        if (begun.size() == 1 ||
            std::find(stages_.begin(), stages_.end(), place.first) == stages_.end())
          stages_.push_back(place.first);
      }
    }
    for (const auto& [place, op] : last) last_[op] = true;
  }

  bool is_first_forward(std::size_t op) const { return first_[op]; }
  bool makes_last_gradients(std::size_t op) const { return last_[op]; }
  /// The stages, in the order in which their forwards begin.
  const std::vector<std::uint32_t>& stages() const { return stages_; }

 private:
  std::vector<bool> first_;
  std::vector<bool> last_;
  std::vector<std::uint32_t> stages_;
};

/// Mini-batches one after the other, each with its flush, all-reduces and updates.
class SynchronousRun {
 public:
  SynchronousRun(const Schedule& schedule, const StageCosts& costs, const LoweringOptions& options,
                 GraphWriter& writer)
      : schedule_(schedule), costs_(costs), options_(options), writer_(writer) {
    const bool any_buckets =
        std::any_of(costs.stages.begin(), costs.stages.end(),
                    [](const StageCost& stage) { return !stage.buckets.empty(); });
    if (any_buckets || options.gather_ahead) ends_.emplace(schedule);
  }

  void write() {
    std::uint32_t gate = kNone;
    for (std::uint32_t k = 0; k < options_.mini_batches; ++k) {
      const std::uint32_t first = writer_.graph().size();
      writer_.begin_mini_batch(k * schedule_.shape.micro_batches);
      last_.assign(writer_.graph().slots(), kNone);
      gradients_.assign(schedule_.shape.stages(), {});
      weights_.assign(schedule_.shape.stages(), {});
      if (options_.gather_ahead) write_gathers_ahead(gate);
      write_ops(gate);
      gate = write_end(first);
    }
  }

 private:
  void write_ops(std::uint32_t gate) {
    const std::vector<Op>& order = schedule_.issue_order;
    each_wave(schedule_, [&](std::size_t begin, std::size_t end) {
      if (options_.blocking) {
        for (std::size_t i = begin; i < end; ++i) {
          for (std::uint32_t copy = 0; copy < options_.written_copies(); ++copy)
            writer_.add_blocking_transfer(order[i], copy);
        }
      }
      for (std::size_t i = begin; i < end; ++i) {
        for (std::uint32_t copy = 0; copy < options_.written_copies(); ++copy)
          write_op(i, copy, gate);
      }
    });
  }

  void write_op(std::size_t index, std::uint32_t copy, std::uint32_t gate) {
    const Op& op = schedule_.issue_order[index];
    const std::uint32_t slot = writer_.wiring().slot(op.stage, op.micro_batch.value, copy);
    std::uint32_t after = writer_.input_of(op, copy);
    if (after == kNone && last_[slot] == kNone) after = gate;
    const std::size_t buckets = costs_.stages[op.stage.value].buckets.size();
    const auto& weights = weights_[op.stage.value];
    const bool needs_weights = !weights.empty() && ends_->is_first_forward(index);
    const bool is_last = buckets > 0 && ends_->makes_last_gradients(index);
    std::vector<std::uint32_t> nodes;
    if (buckets > 0 && (needs_weights || is_last)) {
      nodes = writer_.add_op_in_parts(op, copy, after, buckets);
    } else {
      nodes.push_back(writer_.add_op(op, copy, after));
    }
    last_[slot] = nodes.back();
    if (needs_weights) {
      for (std::size_t part = 0; part < nodes.size(); ++part)
        writer_.add_wait(nodes[part], weights[part]);
    }
    if (is_last || (buckets == 0 && ends_backward(op.kind))) {
      for (const std::uint32_t node : nodes) remember(op, node);
    }
  }

  /// The node that has made gradients of a stage: the last one of each device counts, and each part
  /// of it.
  void remember(const Op& op, std::uint32_t node) {
    if (!writer_.wiring().reductions(op.stage).empty()) gradients_[op.stage.value].push_back(node);
  }

  /// Returns the gate: the node whose end is the end of the mini-batch.
  std::uint32_t write_end(std::uint32_t first) {
    const std::uint32_t last_micro_batch = schedule_.shape.micro_batches - 1;
    const std::uint32_t host = writer_.wiring().host();
    const std::vector<std::uint32_t> reductions = write_reductions(last_micro_batch);
    MiniBatch mini_batch{.first = first, .flush = {}, .reduced = {}, .updated = {}, .gate = {}};
    mini_batch.flush = writer_.add_moment(ActivityKind::flush, {}, last_micro_batch, host, last_);
    mini_batch.reduced = mini_batch.flush;
    if (!reductions.empty()) {
      mini_batch.reduced =
          writer_.add_moment(ActivityKind::flush, {}, last_micro_batch, host, reductions);
    }
    std::vector<std::vector<std::uint32_t>> updates(schedule_.shape.stages());
    for (std::uint32_t s = 0; s < schedule_.shape.stages(); ++s) {
      for (const std::uint32_t slot : writer_.graph().stage_slots[s])
        updates[s].push_back(writer_.add_update({s}, last_micro_batch, slot, mini_batch.reduced));
    }
    std::vector<std::uint32_t> ends;
    for (const auto& of_stage : updates) ends.insert(ends.end(), of_stage.begin(), of_stage.end());
    std::vector<std::uint32_t> gathers;
    if (!options_.gather_ahead) gathers = write_gathers(last_micro_batch, updates);
    if (!gathers.empty()) {
      mini_batch.updated =
          writer_.add_moment(ActivityKind::flush, {}, last_micro_batch, host, ends);
      gathers.push_back(mini_batch.updated);
      ends = std::move(gathers);
    }
    mini_batch.gate = writer_.add_gate(last_micro_batch, std::move(ends));
    if (mini_batch.updated == 0) mini_batch.updated = mini_batch.gate;
    writer_.add_mini_batch(mini_batch);
    return mini_batch.gate;
  }

  /// Those of each stage, behind its updates.
  std::vector<std::uint32_t> write_gathers(std::uint32_t last_micro_batch,
                                           const std::vector<std::vector<std::uint32_t>>& updates) {
    std::vector<std::uint32_t> ends;
    for (std::uint32_t s = 0; s < updates.size(); ++s) {
      for (const Wiring::Collective& gather : writer_.wiring().gathers({s}))
        ends.push_back(writer_.add_collective(gather, {s}, last_micro_batch, updates[s]));
    }
    return ends;
  }

  /// What the updates before have left on others, as soon as the mini-batch begins.
  void write_gathers_ahead(std::uint32_t gate) {
    std::vector<std::uint32_t> ready;
    if (gate != kNone) ready.push_back(gate);
    for (const std::uint32_t s : ends_->stages()) {
      const auto& gathers = writer_.wiring().gathers({s});
      const auto& buckets = costs_.stages[s].buckets;
      for (std::size_t part = 0; part < gathers.size(); ++part) {
        const bool is_empty =
            !buckets.empty() && buckets[buckets.size() - 1 - part].gathered.count == 0;
        weights_[s].push_back(is_empty ? kNone
                                       : writer_.add_collective(gathers[part], {s}, 0, ready));
      }
    }
  }

  /// In the order in which the stages end their backwards, which on devices that share several
  /// stages is that of their lists.
  std::vector<std::uint32_t> write_reductions(std::uint32_t last_micro_batch) {
    std::vector<std::uint32_t> order(gradients_.size());
    std::iota(order.begin(), order.end(), 0U);
    const auto last_of = [&](std::uint32_t s) {
      return gradients_[s].empty() ? 0 : gradients_[s].back();
    };
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return last_of(a) < last_of(b); });
    std::vector<std::uint32_t> ends;
    for (const std::uint32_t s : order) {
      const auto& of_stage = writer_.wiring().reductions({s});
      const auto& buckets = costs_.stages[s].buckets;
      for (std::size_t bucket = 0; bucket < of_stage.size(); ++bucket) {
        if (!buckets.empty() && buckets[bucket].reduced.count == 0) continue;  // makes no gradients
        ends.push_back(writer_.add_collective(of_stage[bucket], {s}, last_micro_batch,
                                              made_gradients(s, bucket, of_stage.size())));
      }
    }
    return ends;
  }

  /// The nodes after which every device has the gradients of this bucket.
  std::vector<std::uint32_t> made_gradients(std::uint32_t stage, std::size_t bucket,
                                            std::size_t buckets) const {
    std::vector<std::uint32_t> nodes;
    if (!costs_.stages[stage].buckets.empty()) {  // parts of one copy stand together
      for (std::size_t i = bucket; i < gradients_[stage].size(); i += buckets)
        nodes.push_back(gradients_[stage][i]);
      return nodes;
    }
    std::vector<std::uint32_t> last(writer_.graph().slots(), kNone);
    for (const std::uint32_t node : gradients_[stage])
      last[writer_.graph().nodes[node].resource] = node;
    for (const std::uint32_t slot : writer_.graph().stage_slots[stage]) {
      if (last[slot] != kNone) nodes.push_back(last[slot]);
    }
    return nodes;
  }

  const Schedule& schedule_;
  const StageCosts& costs_;
  const LoweringOptions& options_;
  GraphWriter& writer_;
  std::optional<StageEnds> ends_;
  std::vector<std::uint32_t> last_;  ///< The last op of each slot in this mini-batch.
  /// Of each stage, the moments at which its weights are there, as its first forwards need them;
  /// empty where they always are.
  std::vector<std::vector<std::uint32_t>> weights_;
  std::vector<std::vector<std::uint32_t>> gradients_;  ///< Of each stage, what made them.
};

/// One long stream with updates in between. Where an update waits for other replicas, an op behind
/// it may have to wait for nodes that come later in the issue order; it is put off until they are
/// there.
class AsynchronousRun {
 public:
  AsynchronousRun(const Schedule& schedule, const LoweringOptions& options, GraphWriter& writer)
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

  /// Whether all ops could be written: false where updates wait for each other.
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
    std::vector<std::vector<std::uint32_t>> backwards;  ///< Of each replica: the nodes.
    std::vector<std::uint32_t> reduced;  ///< Of each round: the end of its all-reduce.
    std::vector<std::uint32_t> updates;  ///< Of each replica: how many it has had.
  };

  /// An update that a slot must have before its next op.
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
      writer_.add_blocking_transfer(op, 0);
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
      writer_.add_blocking_transfer(op, 0);
      late_transfers_.erase(late);
    }
    const std::uint32_t node = writer_.add_op(op, 0, writer_.input_of(op, 0));
    if (ends_backward(op.kind)) end_backward(op, slot, node);
    return true;
  }

  /// Writes what no longer has to wait; returns whether that was anything.
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
      stage.reduced.push_back(writer_.add_collective(writer_.wiring().reductions(op.stage).front(),
                                                     op.stage, last_micro_batch(op.stage, last),
                                                     std::move(ready)));
    }
    if (round && *round < rounds(r)) due_[slot].push_back({op.stage, *round, m % r});
  }

  /// The last micro-batch of the replicas' backwards number `backward`.
  std::uint32_t last_micro_batch(StageId stage, std::size_t backward) const {
    return static_cast<std::uint32_t>(backward + 1) * replicas(stage) - 1;
  }

  /// Whether every replica has ended its `own` backwards of the next round.
  static bool is_made(const StageRounds& stage, std::uint32_t own) {
    return std::all_of(stage.backwards.begin(), stage.backwards.end(), [&](const auto& nodes) {
      return nodes.size() >= (stage.reduced.size() + 1) * own;
    });
  }

  /// The whole rounds; what is left of a last one is never reduced.
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

  /// Behind the last op: what the lag has left.
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
  const LoweringOptions& options_;
  GraphWriter& writer_;
  std::vector<StageRounds> stages_;
  std::vector<std::deque<Op>> waiting_;  ///< Of each slot: ops that are put off.
  std::vector<std::vector<Update>> due_;
  std::vector<Op> late_transfers_;  ///< Blocking ones whose producer is put off.
  std::size_t put_off_ = 0;
};

/// The run cannot last longer than all its activities one after the other.
std::optional<Diagnostic> refuse_overflow(const OpGraph& graph, const Mark& mark) {
  constexpr double most = 4e18;  // ns; 64 bits hold 9.2e18
  double sum = 0;
  double bytes = 0;
  const double at_once = graph.updates_at_once.empty()
                             ? 1
                             : std::max(1.0, *std::max_element(graph.updates_at_once.begin(),
                                                               graph.updates_at_once.end()));
  for (const Node& node : graph.nodes) {
    const Cost& cost = graph.costs[node.cost];
    const std::vector<double>& factors = graph.slowdowns[cost.slowdown];
    const double slowest =
        factors.empty() ? 1 : std::max(1.0, *std::max_element(factors.begin(), factors.end()));
    sum += at_once * slowest * static_cast<double>(cost.hold.count()) +
           static_cast<double>(cost.latency.count());
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

/// An upper bound, close for common runs: ops, the transfers between stages, updates, all-reduces.
double most_nodes_of(const Schedule& schedule, const StageCosts& costs,
                     const LoweringOptions& options) {
  const PipelineShape& shape = schedule.shape;
  double crossings = 0;
  for (std::uint32_t s = 0; s + 1 < shape.stages(); ++s)
    crossings += shape.stage_slots[s] == shape.stage_slots[s + 1] ? 0 : 2;
  double reducing = 2;  // flush and gate
  for (std::uint32_t s = 0; s < shape.stages(); ++s) {
    const double members =
        static_cast<double>(shape.stage_slots[s].size()) * options.written_copies();
    const double buckets = static_cast<double>(costs.stages[s].buckets.size()) + 1;
    const double rounds = schedule.asynchronous ? shape.micro_batches / members + 1 : 1;
    reducing += rounds * members + (members > 1 ? rounds * (members + 2) * buckets : 0) + 1;
    reducing += 2 * members * (buckets - 1);  // parts of a forward and a backward
    if (options.sharded_optimizer) reducing += (members + 2) * buckets + 1;
  }
  return options.mini_batches *
         (options.written_copies() *
              (static_cast<double>(schedule.issue_order.size()) + crossings * shape.micro_batches) +
          reducing);
}

}  // namespace

Result<OpGraph> lower(const Schedule& schedule, const StageCosts& costs,
                      const std::vector<DeviceId>& devices, const Cluster& cluster,
                      const LoweringOptions& options, const Mark& mark) {
  PLUMBLINE_CHECK(
      costs.stages.size() == schedule.shape.stages() && devices.size() == schedule.shape.slots,
      costs.stages.size(), devices.size());
  PLUMBLINE_CHECK((options.copies == 1 && !options.sharded_optimizer) || !schedule.asynchronous,
                  options.copies);
  const double most_nodes = most_nodes_of(schedule, costs, options);
  if (most_nodes > OpGraph::kMostNodes) {
    return input_error(
        mark,
        fmt::format(
            "the run has about {:.0f} ops and transfers, more than the {} that are simulated",
            most_nodes, OpGraph::kMostNodes),
        "make micro_batches, mini_batches or the number of stages smaller");
  }
  GraphWriter writer(schedule.shape, costs, devices, cluster, options);
  writer.reserve(static_cast<std::size_t>(most_nodes));
  if (!schedule.asynchronous) {
    SynchronousRun(schedule, costs, options, writer).write();
  } else if (!AsynchronousRun(schedule, options, writer).write()) {
    Diagnostic stuck = input_error(mark, "the updates of replicated stages wait for each other",
                                   "schedule.update_lag: 1, or another plan.warm_up");
    stuck.fault = Fault::infeasible;
    return stuck;
  }
  OpGraph graph = writer.take();
  if (auto refused = refuse_overflow(graph, mark)) return *refused;
  return graph;
}

}  // namespace plumbline
