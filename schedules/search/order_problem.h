// The question of the best order: stages with their times, devices with their memory.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedules/order/schedule.h"

namespace plumbline {

/// A time in whole units of the caller, such as nanoseconds.
using OrderTime = std::int64_t;

/// The ops that are put in order: F, then B or I, then W where backwards are split.
enum class OrderKind : std::uint8_t { forward, backward, weight };
inline constexpr std::size_t kOrderKinds = 3;

/// One stage: its device, its times, and the transfers that leave it.
struct OrderStage {
  std::uint32_t device = 0;
  std::array<OrderTime, kOrderKinds> time{};  ///< F, B (or I), W. W is 0 where nothing is split.
  OrderTime to_next = 0;      ///< From the end of F to its arrival at the next stage.
  OrderTime to_previous = 0;  ///< From the end of B (or I) to its arrival at the stage before.
};

/// A limit on what each device holds, in any unit. What F and I add is held until the end of W, or
/// of B where nothing is split.
struct OrderLimit {
  std::vector<std::int64_t> room;      ///< Per device, beside what is there all the time.
  std::vector<std::int64_t> forward;   ///< What an F of each stage adds.
  std::vector<std::int64_t> backward;  ///< What a B (or I) of each stage adds at its begin.
  std::vector<std::int64_t> during;    ///< What exists only while B (or I) runs.
};

/// What is to be short.
enum class OrderGoal : std::uint8_t {
  makespan,  ///< From the first op of all devices to the end of the last: a flush follows.
  span,      ///< Of each device from its own first op: no flush, so the longest is the period.
};

/// One iteration: each stage runs all micro-batches, F and B (or I and W) of each.
struct OrderProblem {
  std::uint32_t devices = 0;
  std::uint32_t micro_batches = 0;
  bool split = false;  ///< Whether backwards are in two parts, I and W.
  std::vector<OrderStage> stages;
  std::vector<OrderLimit> limits;  ///< All of them hold.
  OrderGoal goal = OrderGoal::makespan;
  /// What follows the last op of each device, as its update; empty: nothing.
  std::vector<OrderTime> after = {};
  /// The time of each op by its number, where micro-batches are not all of one length. Then the
  /// times of stages are of the mean length, their transfers those of the shortest, and limits
  /// count the longest. Empty: each op takes the time of its stage.
  std::vector<OrderTime> own_time = {};

  OrderTime time(OrderKind kind, std::uint32_t stage, std::uint32_t micro_batch) const {
    if (!own_time.empty()) return own_time[id(kind, stage, micro_batch)];
    return stages[stage].time[static_cast<std::size_t>(kind)];
  }
  std::uint32_t stage_count() const { return static_cast<std::uint32_t>(stages.size()); }
  std::size_t kinds() const { return split ? 3 : 2; }
  std::size_t ops() const { return kinds() * stages.size() * micro_batches; }
  /// The number of an op: by kind, stage, micro-batch.
  std::uint32_t id(OrderKind kind, std::uint32_t stage, std::uint32_t micro_batch) const {
    return (static_cast<std::uint32_t>(kind) * stage_count() + stage) * micro_batches + micro_batch;
  }
  OrderKind kind_of(std::uint32_t op) const {
    return static_cast<OrderKind>(op / micro_batches / stage_count());
  }
  std::uint32_t stage_of(std::uint32_t op) const { return op / micro_batches % stage_count(); }
  std::uint32_t micro_batch_of(std::uint32_t op) const { return op % micro_batches; }
  /// The stages of each device, ascending.
  std::vector<std::vector<std::uint32_t>> stages_by_device() const;
  /// The time that each device works.
  std::vector<OrderTime> work_by_device() const;
  /// The begin of each device's first op, which is the same in all orders: the first micro-batch
  /// goes through the stages before it, and nothing is in its way.
  std::vector<OrderTime> begin_by_device() const;
  /// What is added to the end of each device's last op. The largest sum is what is to be short. For
  /// spans it is below 0 where a device begins late.
  std::vector<OrderTime> tails() const;
};

/// A list of op numbers for each device.
using DeviceOrders = std::vector<std::vector<std::uint32_t>>;

/// What a device lacks to run a single micro-batch.
struct OrderLack {
  std::size_t limit = 0;  ///< Index in OrderProblem::limits.
  std::uint32_t device = 0;
  std::int64_t needs = 0;  ///< The least that any order needs.
  std::int64_t lacks = 0;
};

/// The first device on which not even one micro-batch at a time has room, if there is one.
std::optional<OrderLack> lack_of_room(const OrderProblem& problem);

/// The most that each device holds under `limit` in these orders.
std::vector<std::int64_t> held_at_most(const OrderProblem& problem, const OrderLimit& limit,
                                       const DeviceOrders& orders);

/// Whether all limits hold.
bool has_room(const OrderProblem& problem, const DeviceOrders& orders);

/// The end of each op if the devices run these lists, and what is to be short. An op starts when
/// the op before it in its list has ended and its data is there.
struct OrderTimes {
  std::vector<OrderTime> end;  ///< By op number.
  OrderTime length = 0;        ///< The makespan or the longest span, as OrderProblem::goal says.
};

/// What is to be short, of devices that end their last ops at these times. `tails`: those of the
/// problem. Requires: as many of both, at least one.
OrderTime length_of(const std::vector<OrderTime>& ends, const std::vector<OrderTime>& tails);

/// The times of complete lists; nothing where they deadlock or miss an op.
std::optional<OrderTimes> times_of(const OrderProblem& problem, const DeviceOrders& orders);

/// The same orders as lists of ops, micro-batches numbered from 0.
OpLists op_lists(const OrderProblem& problem, const DeviceOrders& orders);

/// The orders of lists of ops; nothing where an op is not of this problem, as B where backwards are
/// split.
std::optional<DeviceOrders> device_orders(const OrderProblem& problem, const OpLists& lists);

}  // namespace plumbline
