// Rounds of gradients: copies and sums, or one step of a communicator for each member.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/program/gradient_steps.h"

#include <algorithm>

#include "base/bug.h"

namespace plumbline {

GradientSteps::GradientSteps(ProgramDraft& draft)
    : draft_(draft),
      graph_(draft.graph),
      sizes_(draft.sizes),
      program_(draft.program),
      steps_(draft.steps),
      rounds_(draft.graph.stage_slots.size()) {
  for (std::uint32_t s = 0; s < graph_.stage_slots.size(); ++s)
    buckets_.push_back(bucket_ranges(sizes_[s].parameters, sizes_[s].layers,
                                     draft.plan.setup.costs.stages[s].buckets));
}

std::vector<ByteRange> GradientSteps::updated_by(std::uint32_t stage, std::uint32_t slot) const {
  const std::size_t members = graph_.stage_slots[stage].size();
  if (draft_.plan.setup.rules.sharing.state == Sharded::nothing || members == 1)
    return {{0, sizes_[stage].parameters}};
  std::vector<ByteRange> shares;
  for (const ByteRange& bucket : buckets_[stage])
    shares.push_back(share_of(bucket, draft_.member(stage, slot), members));
  return shares;
}

Held GradientSteps::gradients_of(std::uint32_t stage, std::uint32_t m, std::uint32_t slot,
                                 std::uint32_t stream) {
  Held& own = round_of(stage, m).own[draft_.member(stage, slot)];
  if (!own) own = steps_.take(slot, sizes_[stage].parameters, stream, /*is_gradients=*/true);
  return own;
}

void GradientSteps::begin_collective(std::uint32_t node) {
  const Activity& activity = graph_.activities[node];
  const std::uint32_t s = activity.stage.value;
  const ActivityKind kind = graph_.activities[node + 1].kind;
  if (kind == ActivityKind::all_gather) return gather(node);
  Round& round = round_of(s, activity.micro_batch.value);
  PLUMBLINE_CHECK(round.reduced < buckets_[s].size(), s, round.reduced);
  reduce(round, buckets_[s][round.reduced], kind, node, draft_.sources[node]);
}

void GradientSteps::write_hop(std::uint32_t node) {
  draft_.sources[node] = steps_.newest(draft_.needs_of(node));
  const auto found = sent_.find({graph_.nodes[node].input, graph_.sender(node)});
  if (found == sent_.end()) return;
  const std::vector<std::uint32_t> steps = std::move(found->second);
  sent_.erase(found);  // the first of a member's hops takes all of its steps
  for (const std::uint32_t step : steps) program_.steps[step].node = node;
  program_.first_step_of[node] = steps.front();
  program_.step_of[node] = steps.back();
  draft_.sources[node].push_back(steps.back());
}

Held GradientSteps::take_gradients(std::uint32_t stage, std::uint32_t m, std::uint32_t slot,
                                   std::uint32_t node) {
  const auto found = rounds_[stage].find(m / round_length(stage));
  PLUMBLINE_CHECK(found != rounds_[stage].end(), stage, m);
  Round& round = found->second;
  const std::uint32_t stream = compute_stream(slot);
  if (round.own.size() > 1 && round.reduced == 0) {
    std::vector<std::uint32_t> made;
    for (const Held& own : round.own) {
      if (!own) continue;
      for (const auto& [from, use] : own->used) made.push_back(use - 1);
    }
    reduce(round, {0, sizes_[stage].parameters}, ActivityKind::all_reduce, node, made);
  }
  Held own = std::exchange(round.own[draft_.member(stage, slot)], nullptr);
  if (own) {
    for (const auto& [from, use] : own->used) {
      if (from != stream) steps_.wait(stream, {use - 1});
    }
  }
  return own;
}

void GradientSteps::end_update(std::uint32_t stage, std::uint32_t m) {
  const auto found = rounds_[stage].find(m / round_length(stage));
  if (++found->second.updated == found->second.own.size()) rounds_[stage].erase(found);
}

void GradientSteps::clear_leftovers() {
  for (const auto& of_stage : rounds_) {
    for (const auto& [number, round] : of_stage) {
      for (const Held& own : round.own) {
        if (own) clear_behind_last(own->block);
      }
    }
  }
}

std::uint32_t GradientSteps::round_length(std::uint32_t stage) const {
  if (!graph_.asynchronous()) return graph_.micro_batches / draft_.plan.setup.rules.mini_batches;
  return draft_.rules.updates.round_length(
      static_cast<std::uint32_t>(graph_.stage_slots[stage].size()));
}

GradientSteps::Round& GradientSteps::round_of(std::uint32_t stage, std::uint32_t m) {
  Round& round = rounds_[stage][m / round_length(stage)];
  round.own.resize(graph_.stage_slots[stage].size());
  return round;
}

void GradientSteps::reduce(Round& round, const ByteRange& range, ActivityKind kind,
                           std::uint32_t node, const std::vector<std::uint32_t>& made) {
  ++round.reduced;
  const std::uint32_t s = graph_.activities[node].stage.value;
  const auto& slots = graph_.stage_slots[s];
  const std::size_t members = slots.size();
  const std::size_t all = sizes_[s].parameters;
  if (all == 0) return;
  for (std::size_t i = 0; i < members; ++i) {
    Held& own = round.own[i];  // a replica without a micro-batch gets zeros
    if (!own)
      own = steps_.take(slots[i], all, draft_.gathering.at(slots[i]), /*is_gradients=*/true);
  }
  if (draft_.rules.communicators) return write_all_reduce(round, range, node, made);
  std::vector<ByteRange> shares;
  for (std::size_t i = 0; i < members; ++i) shares.push_back(share_of(range, i, members));
  // Each member sends the shares to the members that add them up, beginning with its neighbour.
  std::vector<std::vector<Held>> sent(members, std::vector<Held>(members));  // [adder][sender]
  std::vector<std::vector<std::uint32_t>> arrivals(members);
  for (std::size_t i = 0; i < members; ++i) {
    for (std::size_t k = 1; k < members; ++k) {
      const std::size_t adder = (i + k) % members;
      if (shares[adder].size() == 0) continue;
      const std::uint32_t stream = draft_.gathering.at(slots[i]);
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
  // Each member adds up its share and, in an all-reduce, sends the sum to all others.
  for (std::size_t i = 0; i < members; ++i) {
    if (shares[i].size() == 0) continue;
    const std::uint32_t stream = draft_.gathering.at(slots[i]);
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

void GradientSteps::gather(std::uint32_t node) {
  const std::uint32_t s = graph_.activities[node].stage.value;
  const auto& slots = graph_.stage_slots[s];
  const auto weights_of = [&](std::uint32_t slot, std::size_t at) {
    const std::uint32_t on = draft_.index[s][slot];
    return CudaPiece{kNone32, at, on, draft_.weights[on].rbegin()->second};
  };
  for (std::size_t i = 0; i < slots.size(); ++i) {
    for (std::size_t k = 1; k < slots.size(); ++k) {
      const std::uint32_t other = slots[(i + k) % slots.size()];
      for (const ByteRange& share : program_.stages[draft_.index[s][slots[i]]].updated) {
        if (share.size() == 0) continue;
        steps_.wait(draft_.gathering.at(slots[i]), draft_.sources[node]);
        CudaStep step = gathering_step(CudaStep::Kind::copy, slots[i], node);
        step.from = weights_of(slots[i], share.begin);
        step.to = weights_of(other, share.begin);
        step.bytes = share.size();
        const std::uint32_t done = append_gathering(std::move(step), {});
        steps_.wait(compute_stream(other), {done});
      }
    }
  }
}

void GradientSteps::write_all_reduce(const Round& round, const ByteRange& range, std::uint32_t node,
                                     const std::vector<std::uint32_t>& made) {
  if (range.size() == 0) return;
  const auto& slots = graph_.stage_slots[graph_.activities[node].stage.value];
  for (std::size_t i = 0; i < slots.size(); ++i) {
    steps_.wait(draft_.gathering.at(slots[i]), made);
    CudaStep step = gathering_step(CudaStep::Kind::all_reduce, slots[i], node);
    step.to = {number_of(round.own[i]), range.begin};
    step.bytes = range.size();
    step.communicator = draft_.communicator_of(slots);
    if (i == 0) step.together = static_cast<std::uint32_t>(slots.size());
    append_gathering(std::move(step), {&round.own[i]});
  }
}

CudaStep GradientSteps::gathering_step(CudaStep::Kind kind, std::uint32_t slot,
                                       std::uint32_t node) {
  CudaStep step;
  step.kind = kind;
  step.node = node;
  step.slot = slot;
  step.stream = draft_.gathering.at(slot);
  step.sends = true;
  step.waits = steps_.take_waits(step.stream);
  return step;
}

std::uint32_t GradientSteps::append_gathering(CudaStep step,
                                              std::initializer_list<const Held*> held) {
  const std::uint32_t stream = step.stream;
  const std::uint32_t node = step.node;
  const std::uint32_t slot = step.slot;
  const std::uint32_t done = steps_.append(std::move(step));
  draft_.last[stream] = done;
  steps_.used(done, held);
  sent_[{node, slot}].push_back(done);
  return done;
}

void GradientSteps::clear_behind_last(std::uint32_t block) {
  for (std::size_t i = program_.steps.size(); i-- > 0;) {
    if (program_.steps[i].gradients != block) continue;
    program_.steps[i].clears = true;
    return;
  }
}

}  // namespace plumbline
