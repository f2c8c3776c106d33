// Each bound is the shortest time that one device, or one micro-batch, needs by itself.
//
// SPDX-License-Identifier: MIT
#include "schedules/search/order_bound.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace plumbline {
namespace {

constexpr std::size_t kF = 0;
constexpr std::size_t kB = 1;
constexpr std::size_t kW = 2;
constexpr OrderTime kEndless = std::numeric_limits<OrderTime>::max();
constexpr OrderTime kNoEnd = std::numeric_limits<OrderTime>::min() / 4;

/// The times of one micro-batch that nothing hinders.
struct Chains {
  std::vector<OrderTime> forward;   ///< From the begin to the first F of each stage.
  std::vector<OrderTime> backward;  ///< From the begin to the first B (or I) of each stage.
  /// From the end of B of each stage to the end of all, with the tails of devices.
  std::vector<OrderTime> tail;
};

/// The chains as device `from` sees them. A span of a device that begins later is left out: nothing
/// says that this device is on the way to its begin.
Chains chains_of(const OrderProblem& problem, std::uint32_t from) {
  const std::size_t n = problem.stages.size();
  Chains chains{std::vector<OrderTime>(n), std::vector<OrderTime>(n), std::vector<OrderTime>(n)};
  const std::vector<OrderTime> begin = problem.begin_by_device();
  std::vector<OrderTime> tails = problem.tails();
  for (std::uint32_t d = 0; d < problem.devices; ++d) {
    if (problem.goal == OrderGoal::span && begin[d] > begin[from]) tails[d] = kNoEnd;
  }
  OrderTime now = 0;
  for (std::size_t s = 0; s < n; ++s) {
    chains.forward[s] = now;
    now += problem.stages[s].time[kF] + (s + 1 < n ? problem.stages[s].to_next : 0);
  }
  for (std::size_t s = n; s-- > 0;) {
    chains.backward[s] = now;
    now += problem.stages[s].time[kB] + problem.stages[s].to_previous;
  }
  for (std::size_t s = 0; s < n; ++s) {
    const OrderTime below = s == 0 ? kNoEnd
                                   : problem.stages[s].to_previous +
                                         problem.stages[s - 1].time[kB] + chains.tail[s - 1];
    chains.tail[s] = std::max(problem.stages[s].time[kW] + tails[problem.stages[s].device], below);
  }
  return chains;
}

/// The most time that ops of a kind take of which each holds its F's room: as many as have room, by
/// time for each unit of room. A part of one counts whole, so it is never too little.
OrderTime held_work(const OrderProblem& problem, const OrderLimit* limit, std::uint32_t device,
                    std::vector<std::uint32_t> stages, const std::vector<OrderTime>& time) {
  OrderTime work = 0;
  if (!limit) {
    for (const std::uint32_t s : stages) work += time[s] * problem.micro_batches;
    return work;
  }
  std::sort(stages.begin(), stages.end(), [&](std::uint32_t a, std::uint32_t b) {
    return static_cast<double>(time[a]) * static_cast<double>(limit->forward[b]) >
           static_cast<double>(time[b]) * static_cast<double>(limit->forward[a]);
  });
  std::int64_t room = limit->room[device];
  for (const std::uint32_t s : stages) {
    const std::int64_t each = limit->forward[s];
    if (each <= 0) {
      work += time[s] * problem.micro_batches;
      continue;
    }
    const std::int64_t whole = std::min<std::int64_t>(problem.micro_batches, room / each);
    work += whole * time[s];
    room -= whole * each;
    if (whole < problem.micro_batches && room > 0 && stages.size() > 1) return work + time[s];
  }
  return work;
}

void take_larger(OrderBound& best, OrderTime time, BoundReason reason, std::uint32_t device) {
  if (time > best.time) best = {time, reason, device};
}

/// The bounds of one device, within one limit or without any.
void bound_of_device(const OrderProblem& problem, const Chains& chains, std::uint32_t d,
                     const std::vector<std::uint32_t>& stages, OrderTime work,
                     const OrderLimit* limit, OrderBound& best) {
  const std::size_t n = problem.stages.size();
  std::vector<OrderTime> forward(n);
  std::vector<OrderTime> after(n);   // W, which may follow the last B (or I)
  std::vector<OrderTime> behind(n);  // B (or I) and W, which may follow the last F
  OrderTime tail = std::numeric_limits<OrderTime>::max();
  OrderTime shortest = tail;  // from the begin of the last F to the end of all
  for (const std::uint32_t s : stages) {
    const auto& time = problem.stages[s].time;
    forward[s] = time[kF];
    after[s] = time[kW];
    behind[s] = time[kB] + time[kW];
    tail = std::min(tail, chains.tail[s]);
    shortest =
        std::min(shortest, chains.backward[s] - chains.forward[s] + time[kB] + chains.tail[s]);
  }
  const OrderTime own_tail = problem.tails()[d];
  const OrderTime head = chains.forward[stages.front()];
  const OrderTime first_backward = chains.backward[stages.back()];
  // Until its first B (or I) a device runs F's alone, as many as have room.
  const OrderTime filled = first_backward - held_work(problem, limit, d, stages, forward);
  const BoundReason reason = limit ? BoundReason::memory : BoundReason::work;
  const OrderTime start = std::max(head, filled);
  const BoundReason why = filled > head ? reason : BoundReason::work;
  // After its last B (or I) it runs W's alone, as many as were held, while the stages before go on.
  const OrderTime rest = held_work(problem, limit, d, stages, after);
  take_larger(best, start + work + std::max(own_tail, tail - rest), why, d);
  if (!limit) return;
  // After its last F it runs what was held, while that micro-batch goes to the end and back.
  const OrderTime last_forward = *std::max_element(forward.begin(), forward.end());
  const OrderTime held = held_work(problem, limit, d, stages, behind) + last_forward;
  take_larger(best, head + work - held + shortest, BoundReason::memory, d);
  if (limit->room[d] <= 0) return;
  // What each op's room is taken for, summed, is at most the room for the whole time.
  double taken = 0;
  for (const std::uint32_t s : stages) {
    const OrderTime span =
        chains.backward[s] - chains.forward[s] + problem.stages[s].time[kB] + after[s];
    taken += static_cast<double>(limit->forward[s]) * static_cast<double>(span);
  }
  const double turns =
      taken * problem.micro_batches / static_cast<double>(limit->room[d]) * (1 - 1e-12);
  take_larger(best, head + static_cast<OrderTime>(turns) + own_tail, BoundReason::turn, d);
}

/// The bound where micro-batches are not all of one length: each as the shortest, without limits,
/// or the work of one device.
OrderBound bound_of_lengths(const OrderProblem& problem) {
  OrderProblem shortest = problem;
  shortest.own_time.clear();
  shortest.limits.clear();
  for (std::uint32_t s = 0; s < problem.stage_count(); ++s) {
    for (std::size_t kind = 0; kind < problem.kinds(); ++kind) {
      OrderTime& time = shortest.stages[s].time[kind];
      time = kEndless;
      for (std::uint32_t m = 0; m < problem.micro_batches; ++m)
        time = std::min(time, problem.time(static_cast<OrderKind>(kind), s, m));
    }
  }
  const bool spans = problem.goal == OrderGoal::span;
  OrderBound best = spans ? OrderBound{} : order_bound(shortest);
  const auto by_device = problem.stages_by_device();
  const std::vector<OrderTime> work = problem.work_by_device();
  for (std::uint32_t d = 0; d < problem.devices; ++d) {
    if (by_device[d].empty()) continue;
    const OrderTime behind = problem.after.empty() ? 0 : problem.after[d];
    if (spans) {
      take_larger(best, work[d] + behind, BoundReason::work, d);
      continue;
    }
    const Chains chains = chains_of(shortest, d);
    // After its last B (or I) a device runs W's alone, while the stages before go on.
    OrderTime tail = kEndless;
    OrderTime weights = 0;
    for (const std::uint32_t s : by_device[d]) {
      tail = std::min(tail, chains.tail[s]);
      for (std::uint32_t m = 0; problem.split && m < problem.micro_batches; ++m)
        weights += problem.time(OrderKind::weight, s, m);
    }
    const OrderTime head = chains.forward[by_device[d].front()];
    take_larger(best, head + work[d] + std::max(behind, tail - weights), BoundReason::work, d);
  }
  return best;
}

}  // namespace

OrderBound order_bound(const OrderProblem& problem) {
  if (!problem.own_time.empty()) return bound_of_lengths(problem);
  const auto by_device = problem.stages_by_device();
  const std::vector<OrderTime> work = problem.work_by_device();
  OrderBound best;
  const std::uint32_t first = problem.stages.front().device;
  const OrderTime back = chains_of(problem, first).backward[0];
  const auto& ends = problem.stages.front().time;
  take_larger(best, back + ends[kB] + ends[kW] + problem.tails()[first], BoundReason::chain,
              problem.stages.back().device);
  for (std::uint32_t d = 0; d < problem.devices; ++d) {
    if (by_device[d].empty()) continue;
    const Chains chains = chains_of(problem, d);
    bound_of_device(problem, chains, d, by_device[d], work[d], nullptr, best);
    for (const OrderLimit& limit : problem.limits)
      bound_of_device(problem, chains, d, by_device[d], work[d], &limit, best);
  }
  return best;
}

}  // namespace plumbline
