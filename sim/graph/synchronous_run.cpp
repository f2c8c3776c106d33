// Walks the issue order once per mini-batch, all copies of an op at a time.
//
// SPDX-License-Identifier: MIT
#include "sim/graph/synchronous_run.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/bug.h"
#include "schedules/order/waves.h"

namespace plumbline {
namespace {

std::vector<std::uint32_t> joined(const std::vector<std::vector<std::uint32_t>>& parts) {
  std::vector<std::uint32_t> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace

/// The first ops of an order that need a stage's weights on a device, and the last ops that make
/// its gradients there.
class SynchronousRun::StageEnds {
 public:
  explicit StageEnds(const Schedule& schedule)
      : first_(schedule.issue_order.size(), false), last_(schedule.issue_order.size(), false) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> last;  // by stage, slot
    std::set<std::pair<std::uint32_t, std::uint32_t>> begun;
    std::vector<bool> told(schedule.shape.stages(), false);
    for (std::size_t i = 0; i < schedule.issue_order.size(); ++i) {
      const Op& op = schedule.issue_order[i];
      const std::pair place(op.stage.value, schedule.shape.slot(op.stage, op.micro_batch));
      if (ends_backward(op.kind)) last[place] = i;
      if (op.kind != OpKind::forward || !begun.insert(place).second) continue;
      first_[i] = true;
      if (!told[op.stage.value]) stages_.push_back(op.stage.value);
      told[op.stage.value] = true;
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

SynchronousRun::SynchronousRun(const Schedule& schedule, const StageCosts& costs,
                               const RunRules& options, GraphWriter& writer)
    : schedule_(schedule), costs_(costs), options_(options), writer_(writer) {
  const bool any_buckets =
      std::any_of(costs.stages.begin(), costs.stages.end(),
                  [](const StageCost& stage) { return !stage.buckets.empty(); });
  if (any_buckets || options.gather_ahead) ends_ = std::make_unique<StageEnds>(schedule);
}

SynchronousRun::~SynchronousRun() = default;

void SynchronousRun::write() {
  std::uint32_t gate = kNone;
  for (std::uint32_t k = 0; k < options_.mini_batches; ++k) {
    const std::uint32_t first = writer_.graph().size();
    const std::uint32_t stages = schedule_.shape.stages();
    writer_.begin_mini_batch(k * schedule_.shape.micro_batches);
    streams_.assign(schedule_.shape.slots, {});
    for (Stream& stream : streams_) stream.last.assign(options_.written_copies(), kNone);
    gradients_.assign(stages, {});
    for (std::uint32_t s = 0; s < stages; ++s)
      gradients_[s].resize(std::max<std::size_t>(1, buckets({s})));
    weights_.assign(stages, {});
    if (options_.gather_ahead && options_.sharing.state != Sharded::weights)
      write_gathers_ahead(gate);
    write_ops(gate);
    gate = write_end(first);
  }
}

void SynchronousRun::write_ops(std::uint32_t gate) {
  const std::vector<Op>& order = schedule_.issue_order;
  if (!schedule_.transfers.empty()) return write_ops_and_transfers(gate);
  each_wave(schedule_, [&](std::size_t begin, std::size_t end) {
    if (options_.blocking) {
      for (std::size_t i = begin; i < end; ++i) {
        for (std::uint32_t copy = 0; copy < options_.written_copies(); ++copy)
          writer_.add_transfer_to(order[i], copy);
      }
    }
    for (std::size_t i = begin; i < end; ++i) write_op(i, gate);
  });
}

/// Writes ops, and each transfer in its own place.
void SynchronousRun::write_ops_and_transfers(std::uint32_t gate) {
  auto transfer = schedule_.transfers.begin();
  for (std::size_t i = 0; i <= schedule_.issue_order.size(); ++i) {
    for (; transfer != schedule_.transfers.end() && transfer->before == i; ++transfer) {
      for (std::uint32_t copy = 0; copy < options_.written_copies(); ++copy)
        write_transfer(transfer->feeds, copy);
    }
    if (i < schedule_.issue_order.size()) write_op(i, gate);
  }
}

/// Writes a transfer after the previous transfers of both its ends. A blocking one holds both
/// streams anyway.
void SynchronousRun::write_transfer(const Op& feeds, std::uint32_t copy) {
  const std::uint32_t node = writer_.add_transfer_to(feeds, copy);
  if (node == kNone || options_.blocking) return;
  const OpGraph& graph = writer_.graph();
  last_transfer_.resize(graph.slots(), kNone);
  std::uint32_t& sent = last_transfer_[graph.sender(node)];
  std::uint32_t& received = last_transfer_[graph.receiver(node)];
  writer_.add_waits(node, {sent, received == sent ? kNone : received});
  sent = received = node;
}

/// The gathers that an op waits for if it is the first to need its stage's weights; null if the
/// weights are there.
const SynchronousRun::Nodes* SynchronousRun::weights_for(std::size_t index) const {
  const Op& op = schedule_.issue_order[index];
  const Nodes& weights = weights_[op.stage.value];
  const bool waits =
      op.kind == OpKind::forward && !weights.empty() && ends_->is_first_forward(index);
  return waits ? &weights : nullptr;
}

/// Whether an op is written as one node per bucket.
bool SynchronousRun::is_cut(std::size_t index) const {
  const Op& op = schedule_.issue_order[index];
  if (buckets(op.stage) == 0) return false;
  const Sharing& sharing = options_.sharing;
  const bool reduces = ends_backward(op.kind) && sharing.reduces_each_backward();
  const bool gathers = sharing.state == Sharded::weights &&
                       (sharing.gathers_passes() || ends_->is_first_forward(index));
  return weights_for(index) || gathers || reduces || ends_->makes_last_gradients(index);
}

void SynchronousRun::write_op(std::size_t index, std::uint32_t gate) {
  const Op& op = schedule_.issue_order[index];
  const Nodes* const weights = weights_for(index);
  const bool cut = is_cut(index);
  const std::size_t partner = schedule_.partners.empty() ? index : schedule_.partners[index];
  if (cut) {
    write_parts(op, gate, weights, ends_->makes_last_gradients(index));
  } else if (partner != index && !is_cut(partner)) {  // if cut, the partner runs alone
    write_paired(index, gate, weights);
  } else {
    write_whole(op, gate, weights);
  }
}

/// The node that the first node of an op waits for besides weights.
std::uint32_t SynchronousRun::first_wait(const Op& op, std::uint32_t copy, const Stream& stream,
                                         std::uint32_t gate) const {
  const std::uint32_t input = writer_.input_of(op, copy);
  return input == kNone && stream.last[copy] == kNone ? gate : input;
}

void SynchronousRun::write_whole(const Op& op, std::uint32_t gate, const Nodes* weights) {
  Stream& stream = streams_[schedule_.shape.slot(op.stage, op.micro_batch)];
  for (std::uint32_t copy = 0; copy < options_.written_copies(); ++copy) {
    const std::uint32_t node = writer_.add_op(op, copy, first_wait(op, copy, stream, gate));
    if (weights) writer_.add_waits(node, {weights->front()});
    if (ends_backward(op.kind) && buckets(op.stage) == 0) remember(op, 0, node);
    stream.last[copy] = node;
  }
  keep(stream);
}

/// Writes one op of a pair. The first op waits for the inputs of both; the results of both are
/// ready when the second has ended.
void SynchronousRun::write_paired(std::size_t index, std::uint32_t gate, const Nodes* weights) {
  const std::size_t partner = schedule_.partners[index];
  const bool is_second = partner < index;
  const Op& first = schedule_.issue_order[is_second ? partner : index];
  const Op& second = schedule_.issue_order[is_second ? index : partner];
  const Op& op = is_second ? second : first;
  Stream& stream = streams_[schedule_.shape.slot(op.stage, op.micro_batch)];
  for (std::uint32_t copy = 0; copy < options_.written_copies(); ++copy) {
    const std::uint32_t after = is_second ? kNone : first_wait(op, copy, stream, gate);
    const std::uint32_t node = writer_.add_paired(first, second, is_second, copy, after);
    const std::uint32_t other = is_second ? kNone : writer_.input_of(second, copy);
    writer_.add_waits(node, {other, weights ? weights->front() : kNone});
    const std::uint32_t before = std::exchange(stream.last[copy], node);
    if (!is_second) continue;
    writer_.end_pair(first, second, copy, before, node);
    for (const Op& one : {first, second}) {
      if (ends_backward(one.kind) && buckets(one.stage) == 0) remember(one, 0, node);
    }
  }
  keep(stream);
}

void SynchronousRun::write_parts(const Op& op, std::uint32_t gate, const Nodes* weights,
                                 bool makes_last) {
  Stream& stream = streams_[schedule_.shape.slot(op.stage, op.micro_batch)];
  const std::size_t parts = buckets(op.stage);
  const bool makes_gradients = ends_backward(op.kind);
  std::vector<Made> late;  // reduced when all of the op has ended
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t bucket = op.kind == OpKind::forward ? parts - 1 - part : part;
    std::uint32_t there = weights ? (*weights)[part] : kNone;
    if (options_.sharing.state == Sharded::weights) there = gather(stream, op, bucket, gate);
    write_made(stream);
    // Two buckets of gradients are whole at the same time: this one, and the one on its way.
    std::uint32_t room = kNone;
    if (makes_gradients && !options_.sharing.reduces_once() && stream.scattered.size() > 1)
      room = stream.scattered[stream.scattered.size() - 2];
    Nodes nodes;
    for (std::uint32_t copy = 0; copy < options_.written_copies(); ++copy) {
      const std::uint32_t after = part == 0 ? first_wait(op, copy, stream, gate) : kNone;
      nodes.push_back(writer_.add_part(op, copy, part, parts, after));
      writer_.add_waits(nodes.back(), {there, room});
      if (makes_last) remember(op, bucket, nodes.back());
    }
    stream.last = nodes;
    keep(stream);
    const bool reduces = makes_gradients && options_.sharing.state >= Sharded::gradients &&
                         (makes_last || !options_.sharing.reduces_once());
    if (!reduces || writer_.wiring().reductions(op.stage).empty() ||
        costs_.stages[op.stage.value].buckets[bucket].gradients.count == 0)
      continue;
    const bool is_late = options_.sharing.reduction == Reduction::behind_last_backward;
    (is_late ? late : stream.made)
        .push_back({&reduction_of(op.stage, bucket, makes_last), op, std::move(nodes)});
  }
  for (Made& made : late) {
    made.nodes = stream.last;
    stream.made.push_back(std::move(made));
  }
  // A backward frees its last weights at once: the next pass begins at the other end.
  if (makes_gradients && stream.passing) free_passing(stream);
}

/// What a backward does with the gradients of a bucket.
const Wiring::Collective& SynchronousRun::reduction_of(StageId stage, std::size_t bucket,
                                                       bool is_last) const {
  const auto& scatters = writer_.wiring().scatters(stage);
  return is_last || scatters.empty() ? writer_.wiring().reductions(stage)[bucket]
                                     : scatters[bucket];
}

/// Keeps the newest part of a stream among those that gathers look back to.
void SynchronousRun::keep(Stream& stream) const {
  if (options_.sharing.state != Sharded::weights) return;
  if (stream.parts.size() > options_.sharing.prefetch) stream.parts.erase(stream.parts.begin());
  stream.parts.push_back(stream.last);
}

/// The moment at which the weights of a bucket are whole on all copies. Their gather begins with an
/// earlier part, `prefetch` before this one, so that at most the weights of the parts in between
/// are whole, too. Weights that are whole are not gathered again before they are freed.
std::uint32_t SynchronousRun::gather(Stream& stream, const Op& op, std::size_t bucket,
                                     std::uint32_t gate) {
  const auto& gathers = writer_.wiring().gathers(op.stage);
  const Weights wanted(op.stage, bucket);
  if (gathers.empty() || op.kind == OpKind::backward_weight ||
      costs_.stages[op.stage.value].buckets[bucket].parameters.count == 0)
    return kNone;
  const bool frees = op.kind == OpKind::forward ? options_.sharing.frees_after_forward
                                                : options_.sharing.frees_after_backward;
  if (stream.passing && *stream.passing != wanted) free_passing(stream);
  stream.passing = frees ? std::optional(wanted) : std::nullopt;
  if (!stream.whole.insert(wanted).second) return kNone;
  Nodes ready;
  if (stream.parts.size() > options_.sharing.prefetch) ready = stream.parts.front();
  const auto freed = stream.freed.find(wanted);
  if (freed != stream.freed.end() && (ready.empty() || freed->second.front() > ready.front()))
    ready = freed->second;
  std::erase(ready, kNone);
  if (ready.empty() && gate != kNone) ready.push_back(gate);
  return writer_
      .add_collective(gathers[gathers.size() - 1 - bucket], op.stage, op.micro_batch.value,
                      std::move(ready))
      .last;
}

/// Frees the weights of the newest part that gathered and does not keep them.
void SynchronousRun::free_passing(Stream& stream) {
  stream.whole.erase(*stream.passing);
  stream.freed[*stream.passing] = stream.last;
  stream.passing.reset();
}

void SynchronousRun::write_made(Stream& stream) {
  for (Made& made : stream.made) {
    const auto ends = writer_.add_collective(*made.reduction, made.op.stage,
                                             made.op.micro_batch.value, std::move(made.nodes));
    stream.scattered.push_back(ends.first);
    stream.reduced.push_back(ends.last);
  }
  stream.made.clear();
}

/// Records a node that has made gradients to reduce after the last backward.
void SynchronousRun::remember(const Op& op, std::size_t bucket, std::uint32_t node) {
  if (options_.sharing.state < Sharded::gradients && !writer_.wiring().reductions(op.stage).empty())
    gradients_[op.stage.value][bucket].push_back(node);
}

/// Writes the end of a mini-batch. Returns the gate: the node whose end is the end of the
/// mini-batch.
std::uint32_t SynchronousRun::write_end(std::uint32_t first) {
  if (!options_.flushes) return write_own_ends(first);
  const std::uint32_t last_micro_batch = schedule_.shape.micro_batches - 1;
  MiniBatch mini_batch{.first = first, .flush = {}, .reduced = {}, .updated = {}, .gate = {}};
  write_flush(mini_batch, last_micro_batch, write_reductions(last_micro_batch));
  const std::vector<Nodes> updates = write_updates(
      last_micro_batch, std::vector<Nodes>(schedule_.shape.stages(), {mini_batch.reduced}));
  Nodes ends = joined(updates);
  Nodes gathers;
  if (!options_.gather_ahead && options_.sharing.state != Sharded::weights)
    gathers = write_gathers(last_micro_batch, updates);
  if (!gathers.empty()) {
    mini_batch.updated = writer_.add_moment(ActivityKind::flush, {}, last_micro_batch,
                                            writer_.wiring().host(), ends);
    gathers.push_back(mini_batch.updated);
    ends = std::move(gathers);
  }
  mini_batch.gate = writer_.add_gate(last_micro_batch, std::move(ends));
  if (mini_batch.updated == 0) mini_batch.updated = mini_batch.gate;
  writer_.add_mini_batch(mini_batch);
  return mini_batch.gate;
}

/// Writes the moments at which all devices have ended their ops, and all gradients are reduced.
void SynchronousRun::write_flush(MiniBatch& mini_batch, std::uint32_t last_micro_batch,
                                 Nodes reductions) {
  const std::uint32_t host = writer_.wiring().host();
  Nodes last;
  for (const Stream& stream : streams_)
    last.insert(last.end(), stream.last.begin(), stream.last.end());
  std::erase(last, kNone);
  mini_batch.flush =
      writer_.add_moment(ActivityKind::flush, {}, last_micro_batch, host, std::move(last));
  mini_batch.reduced = mini_batch.flush;
  const Nodes ties = write_ties(last_micro_batch, mini_batch.flush, reductions);
  reductions.insert(reductions.end(), ties.begin(), ties.end());
  if (!reductions.empty()) {
    mini_batch.reduced =
        writer_.add_moment(ActivityKind::flush, {}, last_micro_batch, host, std::move(reductions));
  }
}

/// Writes the all-reduces of tables that several stages hold. Each begins when the stages have
/// their gradients, and have added them up over their own replicas and copies. `flush`: kNone where
/// devices do not wait for each other.
SynchronousRun::Nodes SynchronousRun::write_ties(std::uint32_t last_micro_batch,
                                                 std::uint32_t flush, const Nodes& reductions) {
  Nodes ends;
  const std::uint32_t copies = options_.written_copies();
  for (const Wiring::Tie& tie : writer_.wiring().ties()) {
    for (std::uint32_t copy = 0; copy < copies; ++copy) {
      Nodes ready;
      if (flush != kNone) ready.push_back(flush);
      for (const std::uint32_t stage : tie.stages) {
        for (const std::uint32_t slot : schedule_.shape.stage_slots[stage]) {
          const std::uint32_t last = streams_[slot].last[copy];
          if (flush == kNone && last != kNone) ready.push_back(last);
        }
        for (const std::uint32_t node : reductions) {
          if (writer_.graph().activities[node].stage.value == stage) ready.push_back(node);
        }
      }
      const StageId stage{tie.stages.back()};
      ends.push_back(
          writer_.add_collective(tie.copies[copy], stage, last_micro_batch, std::move(ready)).last);
    }
  }
  return ends;
}

/// Writes the updates of all stages, each after its own nodes; returns them by stage.
std::vector<SynchronousRun::Nodes> SynchronousRun::write_updates(std::uint32_t last_micro_batch,
                                                                 const std::vector<Nodes>& after) {
  std::vector<Nodes> updates(schedule_.shape.stages());
  for (std::uint32_t s = 0; s < schedule_.shape.stages(); ++s) {
    for (const std::uint32_t slot : writer_.graph().stage_slots[s]) {
      updates[s].push_back(writer_.add_update({s}, last_micro_batch, slot, kNone));
      writer_.add_waits(updates[s].back(), after[s]);
    }
  }
  return updates;
}

/// Writes the end of a mini-batch without a flush: an update waits for the reductions of its own
/// stage. The flush comes last, so that the timeline of the one mini-batch has an end.
std::uint32_t SynchronousRun::write_own_ends(std::uint32_t first) {
  const std::uint32_t last_micro_batch = schedule_.shape.micro_batches - 1;
  std::vector<Nodes> reductions(schedule_.shape.stages());
  const Nodes all = write_reductions(last_micro_batch);
  for (const std::uint32_t node : all)
    reductions[writer_.graph().activities[node].stage.value].push_back(node);
  for (Nodes& of_stage : reductions) std::reverse(of_stage.begin(), of_stage.end());
  const Nodes ties = write_ties(last_micro_batch, kNone, all);
  for (std::size_t i = 0; i < ties.size(); ++i) {
    const Wiring::Tie& tie = writer_.wiring().ties()[i / options_.written_copies()];
    for (const std::uint32_t stage : tie.stages) reductions[stage].push_back(ties[i]);
  }
  const std::vector<Nodes> updates = write_updates(last_micro_batch, reductions);
  Nodes ends = joined(updates);
  const Nodes gathers = write_gathers(last_micro_batch, updates);
  ends.insert(ends.end(), gathers.begin(), gathers.end());
  MiniBatch mini_batch{.first = first, .flush = {}, .reduced = {}, .updated = {}, .gate = {}};
  mini_batch.flush = writer_.add_moment(ActivityKind::flush, {}, last_micro_batch,
                                        writer_.wiring().host(), std::move(ends));
  mini_batch.reduced = mini_batch.flush;
  mini_batch.gate = writer_.add_gate(last_micro_batch, {mini_batch.flush});
  mini_batch.updated = mini_batch.gate;
  writer_.add_mini_batch(mini_batch);
  return mini_batch.gate;
}

/// Writes the gathers of each stage after its updates.
SynchronousRun::Nodes SynchronousRun::write_gathers(std::uint32_t last_micro_batch,
                                                    const std::vector<Nodes>& updates) {
  Nodes ends;
  for (std::uint32_t s = 0; s < updates.size(); ++s) {
    for (const Wiring::Collective& gather : writer_.wiring().gathers({s}))
      ends.push_back(writer_.add_collective(gather, {s}, last_micro_batch, updates[s]).last);
  }
  return ends;
}

/// Writes the gathers of weights that the previous updates left on other devices. They begin with
/// the mini-batch.
void SynchronousRun::write_gathers_ahead(std::uint32_t gate) {
  Nodes ready;
  if (gate != kNone) ready.push_back(gate);
  for (const std::uint32_t s : ends_->stages()) {
    const auto& gathers = writer_.wiring().gathers({s});
    const auto& of_stage = costs_.stages[s].buckets;
    for (std::size_t part = 0; part < gathers.size(); ++part) {
      const bool is_empty =
          !of_stage.empty() && of_stage[of_stage.size() - 1 - part].parameters.count == 0;
      weights_[s].push_back(is_empty ? kNone
                                     : writer_.add_collective(gathers[part], {s}, 0, ready).last);
    }
  }
}

/// Writes the reductions in the order in which the stages end their backwards. On devices with
/// several stages that is the order of their lists. Returns the ends of all of these, and of the
/// last two reductions of each stream.
SynchronousRun::Nodes SynchronousRun::write_reductions(std::uint32_t last_micro_batch) {
  Nodes ends;
  for (Stream& stream : streams_) {
    write_made(stream);
    // Where each backward waits for the reductions but two, only those are left.
    const bool waited = !options_.sharing.reduces_once() && options_.sharing.degree == 0;
    const std::size_t left =
        std::min<std::size_t>(waited ? 2 : stream.reduced.size(), stream.reduced.size());
    ends.insert(ends.end(), stream.reduced.end() - static_cast<std::ptrdiff_t>(left),
                stream.reduced.end());
  }
  std::vector<std::uint32_t> order(gradients_.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto last_of = [&](std::uint32_t s) {
    const Nodes& last = gradients_[s].back();
    return last.empty() ? 0 : last.back();
  };
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return last_of(a) < last_of(b); });
  for (const std::uint32_t s : order) {
    const auto& of_stage = writer_.wiring().reductions({s});
    if (options_.sharing.state >= Sharded::gradients && buckets({s}) > 0) continue;
    for (std::size_t bucket = 0; bucket < of_stage.size(); ++bucket) {
      if (buckets({s}) > 0 && costs_.stages[s].buckets[bucket].gradients.count == 0)
        continue;  // makes no gradients
      Nodes ready = members_ready(s, bucket);
      ends.push_back(
          writer_.add_collective(of_stage[bucket], {s}, last_micro_batch, std::move(ready)).last);
    }
  }
  return ends;
}

/// The nodes after which every device has the gradients of this bucket: the last node on each
/// device.
SynchronousRun::Nodes SynchronousRun::members_ready(std::uint32_t stage, std::size_t bucket) const {
  Nodes last(writer_.graph().slots(), kNone);
  for (const std::uint32_t node : gradients_[stage][bucket])
    last[writer_.graph().nodes[node].resource] = node;
  Nodes nodes;
  for (const std::uint32_t slot : writer_.graph().stage_slots[stage]) {
    if (last[slot] != kNone) nodes.push_back(last[slot]);
  }
  return nodes;
}

}  // namespace plumbline
