// One walk over the graph, with a clock for each stream that says what is known to have ended.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/program/program.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "base/bug.h"
#include "calibrate/cuda/program/node_order.h"
#include "calibrate/cuda/program/step_list.h"
#include "calibrate/runtime/ledger.h"

namespace plumbline {
namespace {

/// A micro-batch between its F and its last backward on one stage.
struct InFlight {
  Held input;
  Held output;
  Held kept;
  Held checkpoints;
  Held left;
  Held output_gradient;
  Held input_gradient;     ///< While a backward makes it.
  std::size_t parts = 0;   ///< Of the last backward, or of W, so many buckets are done, of which
  std::size_t layers = 0;  ///< each had some layers.
};

/// The gradients of one update, apart for each device of the stage.
struct GradientRound {
  std::vector<Held> own;    ///< By member; its own until they are reduced, then those of all.
  std::size_t reduced = 0;  ///< So many of its buckets.
  std::size_t updated = 0;
};

/// A stage on one slot while the program is written.
struct Writing {
  std::vector<InFlight> in_flight;
  std::map<std::uint32_t, std::uint32_t> weights;  ///< By version: the piece.
  std::vector<std::uint32_t> free_weights;
};

class Writer {
 public:
  Writer(const RunPlan& plan, const std::vector<StageBytes>& sizes, const DeviceOrders& orders,
         const CudaProgramRules& rules)
      : plan_(plan),
        graph_(plan.graph),
        sizes_(sizes),
        orders_(orders),
        rules_(rules),
        sources_(graph_.size()),
        joins_(joins_by_node(graph_)),
        copies_(plan.setup.copies()),
        rounds_(graph_.stage_slots.size()) {
    make_streams();
    for (std::uint32_t s = 0; s < graph_.stage_slots.size(); ++s)
      buckets_.push_back(
          bucket_ranges(sizes[s].parameters, sizes[s].layers, plan.setup.costs.stages[s].buckets));
    program_.step_of.assign(graph_.size(), kNone32);
    program_.first_step_of.assign(graph_.size(), kNone32);
    index_.assign(graph_.stage_slots.size(), std::vector<std::uint32_t>(graph_.slots(), kNone32));
    for (std::uint32_t s = 0; s < graph_.stage_slots.size(); ++s) {
      for (const std::uint32_t slot : graph_.stage_slots[s]) {
        index_[s][slot] = static_cast<std::uint32_t>(program_.stages.size());
        program_.stages.push_back({s, slot, 1, 0, updated_by(s, slot)});
        Writing writing;
        writing.in_flight.resize(graph_.micro_batches);
        writing.weights[0] = 0;
        writing_.push_back(std::move(writing));
      }
    }
    ledgers_.reserve(graph_.slots());
    for (std::uint32_t slot = 0; slot < graph_.slots(); ++slot) ledgers_.emplace_back(plan, slot);
    const std::size_t places = index_.size() * graph_.micro_batches * copies_;
    inputs_.resize(places);
    output_gradients_.resize(places);
  }

  CudaProgramOrFailure write() {
    program_.order.reserve(graph_.size());
    auto failure = take_nodes(graph_, orders_, joins_, [&](std::uint32_t node) {
      write_node(node);
      program_.order.push_back(node);
    });
    if (failure) return {std::nullopt, *std::move(failure)};
    // Rounds that no update has taken: their gradients are zero again for the next iteration.
    for (auto& of_stage : rounds_) {
      for (auto& [number, round] : of_stage) {
        for (const Held& own : round.own) {
          if (own) leftover_.push_back(own->block);
        }
      }
    }
    mark_leftovers();
    for (std::uint32_t slot = 0; slot < graph_.slots(); ++slot)
      program_.awaited.push_back(steps_.take_waits(compute(slot)));
    for (std::uint32_t on = 0; on < program_.stages.size(); ++on)
      program_.stages[on].last_weights = writing_[on].weights.rbegin()->second;
    for (const CudaStep& step : program_.steps) {
      for (const std::uint32_t before : step.waits) program_.steps[before].signals = true;
    }
    for (const auto& of_slot : program_.awaited) {
      for (const std::uint32_t before : of_slot) program_.steps[before].signals = true;
    }
    return {std::move(program_), {}};
  }

 private:
  void make_streams() {
    auto& streams = program_.streams;
    for (std::uint32_t slot = 0; slot < graph_.slots(); ++slot) streams.push_back({slot, false});
    const auto add = [&](std::uint32_t slot) {
      streams.push_back({slot, true});
      return static_cast<std::uint32_t>(streams.size() - 1);
    };
    for (std::uint32_t node = 0; node < graph_.size(); ++node) {
      if (graph_.blocking || !is_transfer(graph_.activities[node].kind)) continue;
      const std::uint32_t channel = graph_.nodes[node].resource;
      if (channels_.contains(channel)) continue;
      channels_[channel].out = add(graph_.sender(node));
      if (rules_.communicators) channels_[channel].in = add(graph_.receiver(node));
    }
    for (const auto& slots : graph_.stage_slots) {
      if (slots.size() < 2) continue;
      for (const std::uint32_t slot : slots) {
        if (!gathering_.contains(slot)) gathering_[slot] = add(slot);
      }
    }
    steps_.open(streams.size());
    last_.assign(streams.size(), kNone32);
  }

  // ---- waiting ----

  static std::uint32_t compute(std::uint32_t slot) { return slot; }

  /// The steps that a node waits for, besides those of its own stream.
  std::vector<std::uint32_t> needs_of(std::uint32_t node) const {
    std::vector<std::uint32_t> steps;
    const auto add = [&](std::uint32_t one) {
      steps.insert(steps.end(), sources_[one].begin(), sources_[one].end());
    };
    if (graph_.nodes[node].input != graph_.size()) add(graph_.nodes[node].input);
    if (joins_[node]) {
      for (const std::uint32_t one : joins_[node]->inputs) add(one);
    }
    return steps;
  }

  Held& place(std::vector<Held>& of, std::uint32_t stage, std::uint32_t m, std::uint32_t slot) {
    return of[(std::size_t{stage} * graph_.micro_batches + m) * copies_ + slot % copies_];
  }

  // ---- nodes ----

  void write_node(std::uint32_t node) {
    const Activity& activity = graph_.activities[node];
    switch (activity.kind) {
      case ActivityKind::activation_transfer:
      case ActivityKind::gradient_transfer:
        return write_transfer(node);
      case ActivityKind::all_reduce:
      case ActivityKind::reduce_scatter:
      case ActivityKind::all_gather:
        return write_hop(node);
      case ActivityKind::collective_begin:
        sources_[node] = steps_.newest(needs_of(node));
        return begin_collective(node);
      case ActivityKind::collective_step:
      case ActivityKind::collective_end:
      case ActivityKind::flush:
      case ActivityKind::overhead:
        sources_[node] = steps_.newest(needs_of(node));
        return;
      default:
        return write_compute(node);
    }
  }

  void write_transfer(std::uint32_t node) {
    const Activity& activity = graph_.activities[node];
    const std::uint32_t from = graph_.sender(node);
    const std::uint32_t to = graph_.receiver(node);
    const std::uint32_t s = activity.stage.value;
    const std::uint32_t m = activity.micro_batch.value;
    const bool up = activity.kind == ActivityKind::activation_transfer;
    Held& there = place(up ? inputs_ : output_gradients_, s, m, to);
    PLUMBLINE_CHECK(there != nullptr, to_text(activity));
    if (rules_.communicators) return write_exchange(node, there, from, to);
    const std::uint32_t stream =
        graph_.blocking ? compute(from) : channels_.at(graph_.nodes[node].resource).out;
    steps_.wait(stream, needs_of(node));
    if (graph_.blocking && last_[compute(to)] != kNone32) {
      steps_.wait(stream, {last_[compute(to)]});
    }
    if (graph_.blocking) steps_.wait(stream, steps_.due(compute(to)));
    CudaStep step;
    step.kind = CudaStep::Kind::copy;
    step.node = node;
    step.slot = from;
    step.stream = stream;
    step.sends = !graph_.blocking;
    step.waits = steps_.take_waits(stream);
    Held arrived = steps_.take(to, program_.blocks[there->block].bytes, stream);
    step.from = {number_of(there), 0};
    step.to = {number_of(arrived), 0};
    step.bytes = program_.blocks[there->block].bytes;
    const std::uint32_t done = steps_.append(std::move(step));
    last_[stream] = done;
    steps_.used(done, {&there, &arrived});
    there = std::move(arrived);
    program_.step_of[node] = done;
    sources_[node] = {done};
    if (graph_.blocking) steps_.wait(compute(to), {done});
  }

  /// A send and its receive. Where it blocks, neither needs to wait for the other's stream: it does
  /// not end before the other one has begun.
  void write_exchange(std::uint32_t node, Held& there, std::uint32_t from, std::uint32_t to) {
    const Channel channel = graph_.blocking ? Channel{compute(from), compute(to)}
                                            : channels_.at(graph_.nodes[node].resource);
    const auto needs = needs_of(node);
    const auto step_on = [&](CudaStep::Kind kind, std::uint32_t slot, std::uint32_t stream) {
      steps_.wait(stream, needs);
      CudaStep step;
      step.kind = kind;
      step.node = node;
      step.slot = slot;
      step.stream = stream;
      step.sends = !graph_.blocking;
      step.waits = steps_.take_waits(stream);
      step.bytes = program_.blocks[there->block].bytes;
      step.communicator = communicator_of({from, to});
      return step;
    };
    CudaStep send = step_on(CudaStep::Kind::send, from, channel.out);
    CudaStep receive = step_on(CudaStep::Kind::receive, to, channel.in);
    Held arrived = steps_.take(to, receive.bytes, channel.in);
    send.from = {number_of(there), 0};
    receive.to = {number_of(arrived), 0};
    send.together = 2;
    const std::uint32_t sent = steps_.append(std::move(send));
    const std::uint32_t received = steps_.append(std::move(receive));
    last_[channel.out] = sent;
    last_[channel.in] = received;
    steps_.used(sent, {&there});
    steps_.used(received, {&arrived});
    there = std::move(arrived);
    program_.step_of[node] = received;
    sources_[node] = {sent, received};  // each may end a little before the other
  }

  std::uint32_t communicator_of(const std::vector<std::uint32_t>& slots) {
    auto& all = program_.communicators;
    const auto index = std::find(all.begin(), all.end(), slots) - all.begin();
    if (static_cast<std::size_t>(index) == all.size()) all.push_back(slots);
    return static_cast<std::uint32_t>(index);
  }

  void write_compute(std::uint32_t node) {
    const Activity& activity = graph_.activities[node];
    const std::uint32_t slot = graph_.nodes[node].resource;
    const std::uint32_t stream = compute(slot);
    steps_.wait(stream, needs_of(node));
    Ledger& ledger = ledgers_[slot];
    const std::uint32_t version = ledger.version_of(node);
    const std::uint32_t oldest = ledger.oldest_needed(node);
    ledger.begin(node, time_++);
    CudaStep step;
    step.node = node;
    step.slot = slot;
    step.stream = stream;
    step.on = index_[activity.stage.value][slot];
    step.micro_batch = activity.micro_batch.value;
    step.sample = activity.micro_batch.value * copies_ + slot % copies_;
    if (activity.kind == ActivityKind::update) {
      write_update(std::move(step), version, oldest);
    } else {
      write_pass(std::move(step), op_of(activity.kind), is_part(activity.kind), version);
    }
    last_[stream] = program_.step_of[node];
    sources_[node] = {last_[stream]};
    ledger.end(node, time_++);
  }

  /// Of a part that is not the last one, the layers of its bucket; of the last one all that are
  /// left.
  void choose_layers(CudaStep& step, InFlight& one, bool goes_on, std::uint32_t stage) const {
    const auto& layers = plan_.setup.partition.stages[stage].layers;
    if (one.layers > 0) step.end = layers.size() - one.layers;
    if (!goes_on) return;
    one.layers += plan_.setup.costs.stages[stage].buckets[one.parts++].layers;
    step.begin = layers.size() - one.layers;
  }

  /// `goes_on`: it is a part, and not the last one.
  void write_pass(CudaStep step, ActivityKind kind, bool goes_on, std::uint32_t version) {
    const std::uint32_t s = program_.stages[step.on].stage;
    const std::uint32_t m = step.micro_batch;
    const std::uint32_t slot = step.slot;
    const std::uint32_t stream = compute(slot);
    const StageBytes& bytes = sizes_[s];
    const bool is_first = s == 0;
    const bool is_last = s + 1 == sizes_.size();
    Writing& writing = writing_[step.on];
    InFlight& one = writing.in_flight[m];
    step.waits = steps_.take_waits(stream);
    const auto found = writing.weights.find(version);
    PLUMBLINE_CHECK(found != writing.weights.end(), s, version);
    step.weights = found->second;
    const bool recomputes = plan_.recomputes(rules_.recompute, s);
    if (recomputes && rules_.recompute == Recompute::layers) {
      // A backward that is split needs what all layers keep, from I until W.
      const bool in_turn = kind == ActivityKind::forward || kind == ActivityKind::backward;
      step.kept_in = in_turn ? KeptIn::again : KeptIn::recomputed_at_once;
    }
    const auto make_room = [&] {
      if (!is_last && !one.output) one.output = steps_.take(slot, bytes.output, stream);
      one.kept = steps_.take(slot, bytes.in(step.kept_in), stream);
    };
    Held gradients;
    if (kind == ActivityKind::forward) {
      step.kind = CudaStep::Kind::forward;
      if (!is_first) one.input = std::move(place(inputs_, s, m, slot));
      make_room();
      if (step.kept_in != KeptIn::kept)
        one.checkpoints = steps_.take(slot, bytes.checkpoints, stream);
    } else {
      const bool begins = one.parts == 0;
      if (recomputes && kind != ActivityKind::backward_weight && begins) {
        step.recomputes = true;
        make_room();
      }
      if (!is_last && !one.output_gradient)
        one.output_gradient = std::move(place(output_gradients_, s, m, slot));
      gradients = gradients_of(s, m, slot, stream);
      if (kind == ActivityKind::backward) {
        step.kind = CudaStep::Kind::backward;
      } else if (kind == ActivityKind::backward_input) {
        step.kind = CudaStep::Kind::backward_input;
        one.left = steps_.take(slot, bytes.left, stream);
      } else {
        step.kind = CudaStep::Kind::backward_weight;
      }
      if (!is_first && kind != ActivityKind::backward_weight && begins)
        one.input_gradient = steps_.take(slot, bytes.input, stream);
      if (kind != ActivityKind::backward_input) choose_layers(step, one, goes_on, s);
    }
    PLUMBLINE_CHECK(is_first || one.input != nullptr, s, m);
    step.input = number_of(one.input);
    step.output = number_of(one.output);
    step.kept = number_of(one.kept);
    step.checkpoints = number_of(one.checkpoints);
    step.left = number_of(one.left);
    step.output_gradient = number_of(one.output_gradient);
    step.input_gradient = number_of(one.input_gradient);
    step.gradients = number_of(gradients);
    const std::uint32_t node = step.node;
    const std::uint32_t done = steps_.append(std::move(step));
    program_.step_of[node] = done;
    steps_.used(done, {&one.input, &one.output, &one.kept, &one.checkpoints, &one.left,
                       &one.output_gradient, &one.input_gradient, &gradients});
    if (goes_on) return;
    if (one.input_gradient)
      place(output_gradients_, s - 1, m, slot) = std::move(one.input_gradient);
    if (kind == ActivityKind::forward) {
      if (!is_last) place(inputs_, s + 1, m, slot) = one.output;
      if (plan_.recomputes_output(rules_.recompute, s)) one.output = nullptr;
      if (recomputes) one.kept = nullptr;
    }
    if (kind == ActivityKind::backward || kind == ActivityKind::backward_weight) one = {};
  }

  // ---- gradients ----

  /// The micro-batches that one update of a stage covers.
  std::uint32_t round_length(std::uint32_t stage) const {
    if (!graph_.asynchronous()) return graph_.micro_batches / plan_.setup.rules.mini_batches;
    return rules_.updates.round_length(
        static_cast<std::uint32_t>(graph_.stage_slots[stage].size()));
  }

  std::size_t member(std::uint32_t stage, std::uint32_t slot) const {
    const auto& slots = graph_.stage_slots[stage];
    return static_cast<std::size_t>(std::find(slots.begin(), slots.end(), slot) - slots.begin());
  }

  /// What a device updates of a stage.
  std::vector<ByteRange> updated_by(std::uint32_t stage, std::uint32_t slot) const {
    const std::size_t members = graph_.stage_slots[stage].size();
    if (plan_.setup.rules.sharded == Sharded::nothing || members == 1)
      return {{0, sizes_[stage].parameters}};
    std::vector<ByteRange> shares;
    for (const ByteRange& bucket : buckets_[stage])
      shares.push_back(share_of(bucket, member(stage, slot), members));
    return shares;
  }

  GradientRound& round_of(std::uint32_t stage, std::uint32_t m) {
    GradientRound& round = rounds_[stage][m / round_length(stage)];
    round.own.resize(graph_.stage_slots[stage].size());
    return round;
  }

  /// Where a device adds the gradients of a micro-batch.
  Held gradients_of(std::uint32_t stage, std::uint32_t m, std::uint32_t slot,
                    std::uint32_t stream) {
    Held& own = round_of(stage, m).own[member(stage, slot)];
    if (!own) own = steps_.take(slot, sizes_[stage].parameters, stream, /*is_gradients=*/true);
    return own;
  }

  /// What begins here; its hops stand behind it. All backwards of a round stand before its first
  /// reduction.
  void begin_collective(std::uint32_t node) {
    const Activity& activity = graph_.activities[node];
    const std::uint32_t s = activity.stage.value;
    const ActivityKind kind = graph_.activities[node + 1].kind;
    if (kind == ActivityKind::all_gather) return gather(node);
    GradientRound& round = round_of(s, activity.micro_batch.value);
    PLUMBLINE_CHECK(round.reduced < buckets_[s].size(), s, round.reduced);
    reduce(round, buckets_[s][round.reduced], kind, node, sources_[node]);
  }

  /// Each member adds up its share of the range and, in an all-reduce, sends the sum to all others.
  /// Until a hop comes that the steps belong to, they are those of `node`; `made` ends the
  /// backwards.
  void reduce(GradientRound& round, const ByteRange& range, ActivityKind kind, std::uint32_t node,
              const std::vector<std::uint32_t>& made) {
    ++round.reduced;
    const std::uint32_t s = graph_.activities[node].stage.value;
    const auto& slots = graph_.stage_slots[s];
    const std::size_t members = slots.size();
    const std::size_t all = sizes_[s].parameters;
    if (all == 0) return;
    for (std::size_t i = 0; i < members; ++i) {
      Held& own = round.own[i];  // a replica may have had no micro-batch: it has zeros
      if (!own) own = steps_.take(slots[i], all, gathering_.at(slots[i]), /*is_gradients=*/true);
    }
    if (rules_.communicators) return write_all_reduce(round, range, node, made);
    std::vector<ByteRange> shares;
    for (std::size_t i = 0; i < members; ++i) shares.push_back(share_of(range, i, members));
    // The shares to those who add them up, each beginning with its neighbour's.
    std::vector<std::vector<Held>> sent(members, std::vector<Held>(members));  // [adder][sender]
    std::vector<std::vector<std::uint32_t>> arrivals(members);
    for (std::size_t i = 0; i < members; ++i) {
      for (std::size_t k = 1; k < members; ++k) {
        const std::size_t adder = (i + k) % members;
        if (shares[adder].size() == 0) continue;
        const std::uint32_t stream = gathering_.at(slots[i]);
        steps_.wait(stream, made);
        CudaStep step = gathering_step(CudaStep::Kind::copy, slots[i], node);
        Held& there = sent[adder][i];
        there = steps_.take(slots[adder], shares[adder].size(), stream);
        step.from = {number_of(round.own[i]), shares[adder].begin};
        step.to = {number_of(there), 0};
        step.bytes = shares[adder].size();
        arrivals[adder].push_back(append_gathering(std::move(step), {&round.own[i], &there}));
      }
    }
    // Each adds up, and may send the sum to all.
    for (std::size_t i = 0; i < members; ++i) {
      if (shares[i].size() == 0) continue;
      const std::uint32_t stream = gathering_.at(slots[i]);
      steps_.wait(stream, arrivals[i]);
      steps_.wait(stream, made);
      CudaStep sum = gathering_step(CudaStep::Kind::add_up, slots[i], node);
      sum.to = {number_of(round.own[i]), shares[i].begin};
      sum.bytes = shares[i].size();
      for (std::size_t k = 0; k < members; ++k)
        sum.members.push_back(k == i ? sum.to : CudaPiece{number_of(sent[i][k]), 0});
      const std::uint32_t added = append_gathering(std::move(sum), {&round.own[i]});
      for (const Held& one : sent[i]) steps_.used(added, {&one});
      for (std::size_t k = 1; k < members && kind == ActivityKind::all_reduce; ++k) {
        const std::size_t other = (i + k) % members;
        CudaStep step = gathering_step(CudaStep::Kind::copy, slots[i], node);
        step.from = {number_of(round.own[i]), shares[i].begin};
        step.to = {number_of(round.own[other]), shares[i].begin};
        step.bytes = shares[i].size();
        append_gathering(std::move(step), {&round.own[i], &round.own[other]});
      }
    }
  }

  /// Each member sends what it has updated to all others, behind the updates of all: nobody reads
  /// weights any more.
  void gather(std::uint32_t node) {
    const std::uint32_t s = graph_.activities[node].stage.value;
    const auto& slots = graph_.stage_slots[s];
    const auto weights_of = [&](std::uint32_t slot, std::size_t at) {
      const std::uint32_t on = index_[s][slot];
      return CudaPiece{kNone32, at, on, writing_[on].weights.rbegin()->second};
    };
    for (std::size_t i = 0; i < slots.size(); ++i) {
      for (std::size_t k = 1; k < slots.size(); ++k) {
        const std::uint32_t other = slots[(i + k) % slots.size()];
        for (const ByteRange& share : program_.stages[index_[s][slots[i]]].updated) {
          if (share.size() == 0) continue;
          steps_.wait(gathering_.at(slots[i]), sources_[node]);
          CudaStep step = gathering_step(CudaStep::Kind::copy, slots[i], node);
          step.from = weights_of(slots[i], share.begin);
          step.to = weights_of(other, share.begin);
          step.bytes = share.size();
          const std::uint32_t done = append_gathering(std::move(step), {});
          steps_.wait(compute(other), {done});
        }
      }
    }
  }

  /// One step of each member.
  void write_all_reduce(const GradientRound& round, const ByteRange& range, std::uint32_t node,
                        const std::vector<std::uint32_t>& made) {
    if (range.size() == 0) return;
    const auto& slots = graph_.stage_slots[graph_.activities[node].stage.value];
    for (std::size_t i = 0; i < slots.size(); ++i) {
      steps_.wait(gathering_.at(slots[i]), made);
      CudaStep step = gathering_step(CudaStep::Kind::all_reduce, slots[i], node);
      step.to = {number_of(round.own[i]), range.begin};
      step.bytes = range.size();
      step.communicator = communicator_of(slots);
      if (i == 0) step.together = static_cast<std::uint32_t>(slots.size());
      append_gathering(std::move(step), {&round.own[i]});
    }
  }

  /// The next step on the stream on which a slot hands on gradients, with its waits.
  CudaStep gathering_step(CudaStep::Kind kind, std::uint32_t slot, std::uint32_t node) {
    CudaStep step;
    step.kind = kind;
    step.node = node;
    step.slot = slot;
    step.stream = gathering_.at(slot);
    step.sends = true;
    step.waits = steps_.take_waits(step.stream);
    return step;
  }

  std::uint32_t append_gathering(CudaStep step, std::initializer_list<const Held*> held) {
    const std::uint32_t stream = step.stream;
    const std::uint32_t node = step.node;
    const std::uint32_t slot = step.slot;
    const std::uint32_t done = steps_.append(std::move(step));
    last_[stream] = done;
    steps_.used(done, held);
    sent_[{node, slot}].push_back(done);
    return done;
  }

  void write_hop(std::uint32_t node) {
    sources_[node] = steps_.newest(needs_of(node));
    const auto found = sent_.find({graph_.nodes[node].input, graph_.sender(node)});
    if (found == sent_.end()) return;
    const std::vector<std::uint32_t> steps = std::move(found->second);
    sent_.erase(found);  // of several hops of one member the first one carries all
    for (const std::uint32_t step : steps) program_.steps[step].node = node;
    program_.first_step_of[node] = steps.front();
    program_.step_of[node] = steps.back();
    sources_[node].push_back(steps.back());
  }

  void write_update(CudaStep step, std::uint32_t version, std::uint32_t oldest) {
    const std::uint32_t s = program_.stages[step.on].stage;
    const std::uint32_t stream = compute(step.slot);
    Writing& writing = writing_[step.on];
    const auto number_of_round = step.micro_batch / round_length(s);
    const auto found = rounds_[s].find(number_of_round);
    PLUMBLINE_CHECK(found != rounds_[s].end(), s, step.micro_batch);
    GradientRound& round = found->second;
    const std::size_t self = member(s, step.slot);
    if (round.own.size() > 1 && round.reduced == 0) {
      std::vector<std::uint32_t> made;
      for (const Held& own : round.own) {
        if (!own) continue;
        for (const auto& [from, use] : own->used) made.push_back(use - 1);
      }
      reduce(round, {0, sizes_[s].parameters}, ActivityKind::all_reduce, step.node, made);
    }
    const Held own = std::exchange(round.own[self], nullptr);
    // Whatever the graph says: the sums are there, and those who read have read.
    if (own) {
      for (const auto& [from, use] : own->used) {
        if (from != stream) steps_.wait(stream, {use - 1});
      }
    }
    step.waits = steps_.take_waits(stream);
    step.kind = CudaStep::Kind::update;
    step.gradients = number_of(own);
    step.clears = own != nullptr;
    const std::uint32_t before = version - 1;
    const auto old = writing.weights.find(before);
    PLUMBLINE_CHECK(old != writing.weights.end(), s, before);
    step.weights = old->second;
    if (oldest >= version) {
      step.made = step.weights;
      writing.weights.erase(old);
    } else {
      step.made = new_weights(step.on);
    }
    writing.weights[version] = step.made;
    const auto needed = writing.weights.lower_bound(std::min(oldest, version));
    for (auto gone = writing.weights.begin(); gone != needed; ++gone)
      writing.free_weights.push_back(gone->second);
    writing.weights.erase(writing.weights.begin(), needed);
    const std::uint32_t node = step.node;
    const std::uint32_t done = steps_.append(std::move(step));
    program_.step_of[node] = done;
    steps_.used(done, {&own});
    if (++round.updated == round.own.size()) rounds_[s].erase(found);
  }

  std::uint32_t new_weights(std::uint32_t on) {
    std::vector<std::uint32_t>& free = writing_[on].free_weights;
    if (free.empty()) return program_.stages[on].weights++;
    const std::uint32_t piece = free.back();
    free.pop_back();
    return piece;
  }

  /// The last backward that adds to gradients which nobody takes clears them behind it.
  void mark_leftovers() {
    for (const std::uint32_t block : leftover_) {
      for (std::size_t i = program_.steps.size(); i-- > 0;) {
        if (program_.steps[i].gradients != block) continue;
        program_.steps[i].clears = true;
        break;
      }
    }
  }

  const RunPlan& plan_;
  const OpGraph& graph_;
  const std::vector<StageBytes>& sizes_;
  const DeviceOrders& orders_;
  const CudaProgramRules& rules_;
  CudaProgram program_;
  /// The streams of a channel: at the sender, and with communicators at the receiver.
  struct Channel {
    std::uint32_t out = 0;
    std::uint32_t in = 0;
  };
  std::map<std::uint32_t, Channel> channels_;         ///< By resource.
  std::map<std::uint32_t, std::uint32_t> gathering_;  ///< By slot: the stream.
  StepList steps_{program_};                          // before all that may hold a block
  std::vector<std::vector<std::uint32_t>> sources_;   ///< Of each node: the steps that end it.
  std::vector<const Join*> joins_;
  std::uint32_t copies_;
  std::vector<std::vector<std::uint32_t>> index_;  ///< [stage][slot], in CudaProgram::stages.
  std::vector<Writing> writing_;
  std::vector<Ledger> ledgers_;
  RealTime time_ = 0;
  std::vector<Held> inputs_;
  std::vector<Held> output_gradients_;
  std::vector<std::vector<ByteRange>> buckets_;  ///< Of each stage's gradients.
  std::vector<std::map<std::uint32_t, GradientRound>> rounds_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> sent_;
  std::vector<std::uint32_t> leftover_;
  std::vector<std::uint32_t> last_;  ///< Of each stream: its newest step.
};

}  // namespace

std::size_t CudaProgram::bytes_of(std::uint32_t slot, const std::vector<StageBytes>& sizes) const {
  std::size_t bytes = 0;
  for (const Block& block : blocks) bytes += block.slot == slot ? block.bytes : 0;
  for (const StageOnSlot& on : stages)
    bytes += on.slot == slot ? on.weights * sizes[on.stage].parameters : 0;
  return bytes;
}

CudaProgramOrFailure cuda_program(const RunPlan& plan, const std::vector<StageBytes>& sizes,
                                  const DeviceOrders& orders, const CudaProgramRules& rules) {
  PLUMBLINE_CHECK(
      orders.size() == plan.graph.slots() && sizes.size() == plan.graph.stage_slots.size(),
      orders.size(), sizes.size());
  return Writer(plan, sizes, orders, rules).write();
}

}  // namespace plumbline
