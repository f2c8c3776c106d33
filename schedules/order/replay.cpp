// A replay is a walk over lists. Each device goes on until it must wait; the op that it waits for
// wakes it.
//
// SPDX-License-Identifier: MIT
#include "schedules/order/replay.h"

#include <algorithm>
#include <limits>

#include "base/bug.h"

namespace plumbline {
namespace {

constexpr std::uint32_t kNotYet = std::numeric_limits<std::uint32_t>::max();

/// The end of the forward and the backward (or I) of each stage and micro-batch.
class Ends {
 public:
  explicit Ends(const PipelineShape& shape)
      : micro_batches_(shape.micro_batches),
        last_stage_(shape.stages() - 1),
        forward_(std::size_t{shape.stages()} * shape.micro_batches, kNotYet),
        backward_(forward_) {}

  void set(const Op& op, std::uint32_t step) {
    if (op.kind == OpKind::forward) forward_[at(op.stage.value, op)] = step;
    if (op.kind == OpKind::backward || op.kind == OpKind::backward_input)
      backward_[at(op.stage.value, op)] = step;
  }

  /// The step at which all ops that `op` needs have ended; kNotYet where one has not.
  std::uint32_t ready(const Op& op) const {
    const std::uint32_t s = op.stage.value;
    switch (op.kind) {
      case OpKind::forward:
        return s == 0 ? 0 : forward_[at(s - 1, op)];
      case OpKind::backward:
      case OpKind::backward_input:
        return std::max(forward_[at(s, op)], s == last_stage_ ? 0 : backward_[at(s + 1, op)]);
      case OpKind::backward_weight:
        return backward_[at(s, op)];
    }
    return kNotYet;
  }

 private:
  std::size_t at(std::uint32_t stage, const Op& op) const {
    return std::size_t{stage} * micro_batches_ + op.micro_batch.value;
  }

  std::size_t micro_batches_;
  std::uint32_t last_stage_;
  std::vector<std::uint32_t> forward_;
  std::vector<std::uint32_t> backward_;
};

}  // namespace

Replay replay(const PipelineShape& shape, const OpLists& lists, const PairStarts& pairs) {
  Replay result;
  result.done.assign(lists.size(), 0);
  result.start.resize(lists.size());
  for (std::size_t slot = 0; slot < lists.size(); ++slot)
    result.start[slot].reserve(lists[slot].size());
  Ends ends(shape);
  std::vector<std::uint32_t> free_at(lists.size(), 0);
  std::vector<std::uint32_t> to_try;
  for (std::uint32_t slot = 0; slot < lists.size(); ++slot) to_try.push_back(slot);
  std::size_t left = 0;
  for (const auto& list : lists) left += list.size();
  while (!to_try.empty()) {
    const std::uint32_t slot = to_try.back();
    to_try.pop_back();
    std::size_t& next = result.done[slot];
    while (next < lists[slot].size()) {
      // One op, or the two of a pair.
      const std::uint32_t count = !pairs.empty() && pairs[slot][next] ? 2 : 1;
      std::uint32_t ready = free_at[slot];
      for (std::uint32_t i = 0; i < count; ++i)
        ready = std::max(ready, ends.ready(lists[slot][next + i]));
      if (ready == kNotYet) break;
      free_at[slot] = ready + count;
      for (std::uint32_t i = 0; i < count; ++i, ++next, --left) {
        const Op& op = lists[slot][next];
        result.start[slot].push_back(ready + i);
        ends.set(op, ready + count);
        // Wake the device of the op that may have waited for this one.
        if (op.kind == OpKind::forward && op.stage.value + 1 < shape.stages()) {
          to_try.push_back(shape.slot({op.stage.value + 1}, op.micro_batch));
        } else if (op.kind != OpKind::forward && op.stage.value > 0) {
          to_try.push_back(shape.slot({op.stage.value - 1}, op.micro_batch));
        }
      }
    }
  }
  result.complete = left == 0;
  return result;
}

PairStarts pair_starts(const Schedule& schedule) {
  PairStarts pairs;
  if (schedule.partners.empty()) return pairs;
  pairs.resize(schedule.shape.slots);
  for (std::uint32_t i = 0; i < schedule.issue_order.size(); ++i) {
    const Op& op = schedule.issue_order[i];
    pairs[schedule.shape.slot(op.stage, op.micro_batch)].push_back(schedule.partners[i] > i);
  }
  return pairs;
}

ReplayTimes replay_times(const Schedule& schedule) {
  Replay result = replay(schedule.shape, schedule.lists(), pair_starts(schedule));
  PLUMBLINE_CHECK(result.complete, schedule.name);
  return std::move(result.start);
}

void order_by_replay(const OpLists& lists, const ReplayTimes& start, std::vector<Op>& issue_order,
                     std::vector<std::uint32_t>& waves) {
  // A counting sort by step, then each step by micro-batch and stage.
  std::uint32_t steps = 0;
  for (const auto& times : start) steps = std::max(steps, times.empty() ? 0 : times.back() + 1);
  std::vector<std::uint32_t> first(std::size_t{steps} + 1, 0);
  for (const auto& times : start) {
    for (const std::uint32_t step : times) ++first[step + 1];
  }
  for (std::size_t step = 1; step < first.size(); ++step) first[step] += first[step - 1];
  issue_order.resize(first.back());
  std::vector<std::uint32_t> at(first.begin(), first.end() - 1);
  for (std::size_t slot = 0; slot < lists.size(); ++slot) {
    for (std::size_t i = 0; i < lists[slot].size(); ++i)
      issue_order[at[start[slot][i]]++] = lists[slot][i];
  }
  waves.clear();
  for (std::uint32_t step = 0; step < steps; ++step) {
    if (first[step] == first[step + 1]) continue;
    waves.push_back(first[step]);
    std::sort(issue_order.begin() + first[step], issue_order.begin() + first[step + 1],
              [](const Op& a, const Op& b) {
                return a.micro_batch != b.micro_batch ? a.micro_batch < b.micro_batch
                                                      : a.stage < b.stage;
              });
  }
}

}  // namespace plumbline
