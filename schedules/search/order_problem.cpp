// Memory and times of given orders.
//
// SPDX-License-Identifier: MIT
#include "schedules/search/order_problem.h"

#include <algorithm>

namespace plumbline {

std::vector<std::vector<std::uint32_t>> OrderProblem::stages_by_device() const {
  std::vector<std::vector<std::uint32_t>> result(devices);
  for (std::uint32_t s = 0; s < stage_count(); ++s) result[stages[s].device].push_back(s);
  return result;
}

std::vector<OrderTime> OrderProblem::work_by_device() const {
  std::vector<OrderTime> work(devices);
  for (std::uint32_t op = 0; op < own_time.size(); ++op)
    work[stages[stage_of(op)].device] += own_time[op];
  if (!own_time.empty()) return work;
  for (const OrderStage& stage : stages) {
    for (const OrderTime time : stage.time) work[stage.device] += time * micro_batches;
  }
  return work;
}

std::vector<OrderTime> OrderProblem::begin_by_device() const {
  std::vector<OrderTime> begin(devices, -1);
  OrderTime now = 0;
  for (std::uint32_t s = 0; s < stage_count(); ++s) {
    if (begin[stages[s].device] < 0) begin[stages[s].device] = now;
    now += time(OrderKind::forward, s, 0) + stages[s].to_next;
  }
  return begin;
}

std::vector<OrderTime> OrderProblem::tails() const {
  std::vector<OrderTime> tails = after;
  tails.resize(devices);
  if (goal == OrderGoal::makespan) return tails;
  const std::vector<OrderTime> begin = begin_by_device();
  for (std::uint32_t d = 0; d < devices; ++d) tails[d] -= begin[d];
  return tails;
}

std::optional<OrderLack> lack_of_room(const OrderProblem& problem) {
  const auto by_device = problem.stages_by_device();
  for (std::size_t l = 0; l < problem.limits.size(); ++l) {
    const OrderLimit& limit = problem.limits[l];
    for (std::uint32_t d = 0; d < problem.devices; ++d) {
      std::int64_t held = 0;
      std::int64_t needs = 0;
      for (const std::uint32_t s : by_device[d]) needs = std::max(needs, held += limit.forward[s]);
      for (std::size_t i = by_device[d].size(); i-- > 0;) {
        const std::uint32_t s = by_device[d][i];
        needs = std::max(needs, held + limit.backward[s] + limit.during[s]);
        held -= limit.forward[s];
      }
      if (needs > limit.room[d]) return OrderLack{l, d, needs, needs - limit.room[d]};
    }
  }
  return std::nullopt;
}

std::vector<std::int64_t> held_at_most(const OrderProblem& problem, const OrderLimit& limit,
                                       const DeviceOrders& orders) {
  std::vector<std::int64_t> most(problem.devices);
  for (std::uint32_t d = 0; d < problem.devices; ++d) {
    std::int64_t held = 0;
    for (const std::uint32_t op : orders[d]) {
      const std::uint32_t s = problem.stage_of(op);
      const OrderKind kind = problem.kind_of(op);
      if (kind == OrderKind::forward) {
        held += limit.forward[s];
      } else if (kind == OrderKind::backward) {
        held += limit.backward[s];
        most[d] = std::max(most[d], held + limit.during[s]);
      }
      most[d] = std::max(most[d], held);
      const bool frees = problem.split ? kind == OrderKind::weight : kind == OrderKind::backward;
      if (frees) held -= limit.forward[s] + limit.backward[s];
    }
  }
  return most;
}

bool has_room(const OrderProblem& problem, const DeviceOrders& orders) {
  return std::all_of(problem.limits.begin(), problem.limits.end(), [&](const OrderLimit& limit) {
    const std::vector<std::int64_t> held = held_at_most(problem, limit, orders);
    for (std::size_t d = 0; d < held.size(); ++d) {
      if (held[d] > limit.room[d]) return false;
    }
    return true;
  });
}

namespace {

/// When the data of an op is there: the largest end of what it needs, transfers included. Below 0:
/// something it needs has not run yet.
OrderTime data_of(const OrderProblem& problem, const std::vector<OrderTime>& end, OrderKind kind,
                  std::uint32_t s, std::uint32_t m) {
  if (kind == OrderKind::forward) {
    if (s == 0) return 0;
    const OrderTime before = end[problem.id(kind, s - 1, m)];
    return before < 0 ? before : before + problem.stages[s - 1].to_next;
  }
  if (kind == OrderKind::weight) return end[problem.id(OrderKind::backward, s, m)];
  OrderTime ready = end[problem.id(OrderKind::forward, s, m)];
  if (ready < 0 || s + 1 == problem.stage_count()) return ready;
  const OrderTime behind = end[problem.id(kind, s + 1, m)];
  return behind < 0 ? behind : std::max(ready, behind + problem.stages[s + 1].to_previous);
}

}  // namespace

OrderTime length_of(const std::vector<OrderTime>& ends, const std::vector<OrderTime>& tails) {
  OrderTime length = ends.front() + tails.front();
  for (std::size_t d = 1; d < ends.size(); ++d) length = std::max(length, ends[d] + tails[d]);
  return length;
}

std::optional<OrderTimes> times_of(const OrderProblem& problem, const DeviceOrders& orders) {
  OrderTimes times{std::vector<OrderTime>(problem.ops(), -1), 0};
  std::vector<std::size_t> next(problem.devices);
  std::vector<OrderTime> free(problem.devices);
  std::vector<std::uint32_t> awake(problem.devices);
  for (std::uint32_t d = 0; d < problem.devices; ++d) awake[d] = d;
  std::vector<bool> waits(problem.devices, false);  // on the list of those that may go on
  std::fill(waits.begin(), waits.end(), true);
  std::size_t ran = 0;
  while (!awake.empty()) {
    const std::uint32_t d = awake.back();
    awake.pop_back();
    waits[d] = false;
    while (next[d] < orders[d].size()) {
      const std::uint32_t op = orders[d][next[d]];
      const OrderKind kind = problem.kind_of(op);
      const std::uint32_t s = problem.stage_of(op);
      const std::uint32_t m = problem.micro_batch_of(op);
      const OrderTime ready = data_of(problem, times.end, kind, s, m);
      if (ready < 0) break;
      free[d] = std::max(free[d], ready) + problem.time(kind, s, m);
      times.end[op] = free[d];
      ++next[d];
      ++ran;
      const auto wake = [&](std::uint32_t stage) {
        const std::uint32_t other = problem.stages[stage].device;
        if (other == d || waits[other]) return;
        waits[other] = true;
        awake.push_back(other);
      };
      if (kind == OrderKind::forward && s + 1 < problem.stage_count()) wake(s + 1);
      if (kind == OrderKind::backward && s > 0) wake(s - 1);
    }
  }
  if (ran != problem.ops()) return std::nullopt;
  times.length = length_of(free, problem.tails());
  return times;
}

OpLists op_lists(const OrderProblem& problem, const DeviceOrders& orders) {
  OpLists lists(orders.size());
  for (std::size_t d = 0; d < orders.size(); ++d) {
    lists[d].reserve(orders[d].size());
    for (const std::uint32_t op : orders[d]) {
      const OrderKind kind = problem.kind_of(op);
      OpKind is = OpKind::forward;
      if (kind == OrderKind::backward)
        is = problem.split ? OpKind::backward_input : OpKind::backward;
      if (kind == OrderKind::weight) is = OpKind::backward_weight;
      lists[d].push_back({is, {problem.stage_of(op)}, {problem.micro_batch_of(op)}});
    }
  }
  return lists;
}

std::optional<DeviceOrders> device_orders(const OrderProblem& problem, const OpLists& lists) {
  if (lists.size() != problem.devices) return std::nullopt;
  DeviceOrders orders(lists.size());
  for (std::size_t d = 0; d < lists.size(); ++d) {
    orders[d].reserve(lists[d].size());
    for (const Op& op : lists[d]) {
      if (op.stage.value >= problem.stage_count() || op.micro_batch.value >= problem.micro_batches)
        return std::nullopt;
      if (problem.stages[op.stage.value].device != d) return std::nullopt;
      const bool whole = op.kind == OpKind::backward;
      if (op.kind != OpKind::forward && whole == problem.split) {
        if (!whole) return std::nullopt;
        // A whole backward runs as its two parts, one after the other.
        orders[d].push_back(problem.id(OrderKind::backward, op.stage.value, op.micro_batch.value));
        orders[d].push_back(problem.id(OrderKind::weight, op.stage.value, op.micro_batch.value));
        continue;
      }
      OrderKind kind = OrderKind::forward;
      if (op.kind == OpKind::backward || op.kind == OpKind::backward_input)
        kind = OrderKind::backward;
      if (op.kind == OpKind::backward_weight) kind = OrderKind::weight;
      orders[d].push_back(problem.id(kind, op.stage.value, op.micro_batch.value));
    }
  }
  return orders;
}

}  // namespace plumbline
