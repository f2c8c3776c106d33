// Pairs are found list by list, and a replay checks them.
//
// SPDX-License-Identifier: MIT
#include "schedules/order/pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "schedules/order/replay.h"

namespace plumbline {
namespace {

/// Whether neither op needs the other, wherever their stages are.
bool may_overlap(const Op& a, const Op& b) {
  const auto is = [](const Op& op, OpKind kind) { return op.kind == kind; };
  const bool kinds_fit = (is(a, OpKind::forward) && is(b, OpKind::backward)) ||
                         (is(a, OpKind::backward) && is(b, OpKind::forward));
  return kinds_fit && a.micro_batch != b.micro_batch;
}

/// The pairs that begin with an op of kind `first`.
PairStarts pairs_in(const OpLists& lists, OpKind first) {
  PairStarts starts(lists.size());
  for (std::size_t slot = 0; slot < lists.size(); ++slot) {
    const std::vector<Op>& list = lists[slot];
    starts[slot].assign(list.size(), false);
    for (std::size_t i = 0; i + 1 < list.size(); ++i) {
      if (list[i].kind != first || !may_overlap(list[i], list[i + 1])) continue;
      starts[slot][i] = true;
      ++i;
    }
  }
  return starts;
}

bool has_any(const PairStarts& starts) {
  return std::any_of(starts.begin(), starts.end(), [](const std::vector<bool>& of_slot) {
    return std::find(of_slot.begin(), of_slot.end(), true) != of_slot.end();
  });
}

std::optional<Diagnostic> check_marked(const OpLists& lists, const PairStarts& marked,
                                       const Mark& mark) {
  for (std::size_t slot = 0; slot < marked.size(); ++slot) {
    for (std::size_t i = 0; i + 1 < lists[slot].size(); ++i) {
      const Op& a = lists[slot][i];
      const Op& b = lists[slot][i + 1];
      if (!marked[slot][i] || may_overlap(a, b)) continue;
      return input_error(
          mark,
          fmt::format("schedule.pairs is overlapped, but the pair of {} and {} is no "
                      "forward and whole backward of two micro-batches",
                      to_text(a), to_text(b)),
          "schedule.pairs: apart, or another order in the file");
    }
  }
  return std::nullopt;
}

/// The partner of each op in the order of the schedule; the op itself where it has no partner.
std::vector<std::uint32_t> partners(const Schedule& schedule, const PairStarts& starts) {
  std::vector<std::uint32_t> result(schedule.issue_order.size());
  std::vector<std::size_t> at(starts.size(), 0);        // index in the slot's list
  std::vector<std::uint32_t> before(starts.size(), 0);  // the slot's previous op
  for (std::uint32_t i = 0; i < result.size(); ++i) {
    const Op& op = schedule.issue_order[i];
    const std::uint32_t slot = schedule.shape.slot(op.stage, op.micro_batch);
    result[i] = i;
    if (at[slot] > 0 && starts[slot][at[slot] - 1]) {
      result[i] = before[slot];
      result[before[slot]] = i;
    }
    ++at[slot];
    before[slot] = i;
  }
  return result;
}

}  // namespace

Result<std::vector<Schedule>> pair_up(const Schedule& schedule, const PairStarts& marked,
                                      const Mark& mark) {
  const OpLists lists = schedule.lists();
  std::vector<PairStarts> ways;
  if (has_any(marked)) {
    if (const auto refused = check_marked(lists, marked, mark)) return *refused;
    ways.push_back(marked);
  } else {
    for (const OpKind first : {OpKind::forward, OpKind::backward}) {
      PairStarts starts = pairs_in(lists, first);
      if (has_any(starts)) ways.push_back(std::move(starts));
    }
  }
  if (ways.empty()) {
    return input_error(mark,
                       fmt::format("the schedule '{}' has no forward right beside the whole "
                                   "backward of another micro-batch",
                                   schedule.name),
                       "1f1b, eager-1f1b, interleaved-1f1b, chimera, dualpipe and dualpipev have, "
                       "with micro-batches enough");
  }
  std::vector<Schedule> paired;
  for (const PairStarts& starts : ways) {
    const Replay replayed = replay(schedule.shape, lists, starts);
    if (!replayed.complete) continue;
    Schedule& one = paired.emplace_back(schedule);
    one.host_loop = false;
    order_by_replay(lists, replayed.start, one.issue_order, one.waves);
    one.partners = partners(one, starts);
  }
  if (!paired.empty()) return paired;
  Diagnostic stuck = input_error(
      mark,
      fmt::format("in pairs, the ops of the schedule '{}' wait for each other", schedule.name),
      "another schedule or plan.warm_up, or schedule.pairs: apart");
  stuck.fault = Fault::infeasible;
  return stuck;
}

PairStarts dual_pairs(const Schedule& schedule) {
  const OpLists lists = schedule.lists();
  PairStarts starts = pairs_in(lists, OpKind::forward);
  for (std::size_t slot = 0; slot < lists.size(); ++slot) {
    std::uint32_t first = std::numeric_limits<std::uint32_t>::max();
    std::uint32_t last = 0;
    for (const Op& op : lists[slot]) {
      first = std::min(first, op.stage.value);
      last = std::max(last, op.stage.value);
    }
    const auto pair = std::find(starts[slot].begin(), starts[slot].end(), true);
    if (last == first + 1 && pair != starts[slot].end()) *pair = false;
  }
  return starts;
}

}  // namespace plumbline
