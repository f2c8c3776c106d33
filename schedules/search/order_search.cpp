// Blocks, then changed blocks, then moves in the order.
//
// SPDX-License-Identifier: MIT
#include "schedules/search/order_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "schedules/search/block_orders.h"
#include "schedules/search/dice.h"
#include "schedules/search/list_scheduler.h"
#include "schedules/search/order_bound.h"
#include "schedules/search/order_moves.h"

namespace plumbline {
namespace {

constexpr OrderTime kNoLimit = std::numeric_limits<OrderTime>::max();

class OrderSearch {
 public:
  OrderSearch(const OrderProblem& problem, const OrderSearchOptions& options)
      : p_(problem), options_(options), bound_(order_bound(problem).time) {}

  FoundOrder run() {
    for (std::size_t i = 0; i < options_.known.size(); ++i) try_known(i);
    if (done()) return std::move(best_);
    std::vector<std::pair<OrderTime, OrderBlock>> tried;
    for (const OrderBlock& block : usual_blocks(p_)) {
      tried.emplace_back(try_block(block), block);
      if (done()) return std::move(best_);
    }
    std::stable_sort(tried.begin(), tried.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    tried.resize(std::min<std::size_t>(tried.size(), 8));
    climb(tried);
    refine(best_.orders, options_.effort * 7 / 16);
    // A published order can be near a good one that no block describes.
    std::stable_sort(known_.begin(), known_.end());
    for (const auto& [length, index] : known_) list_again(options_.known[index]);
    for (std::size_t i = 0; i < std::min<std::size_t>(2, known_.size()); ++i)
      refine(options_.known[known_[i].second],
             options_.effort * (8 + static_cast<std::int64_t>(i)) / 16);
    move_all();
    return std::move(best_);
  }

 private:
  bool done() const {
    const bool is_stopped = options_.stop && *options_.stop;
    return (best_.length > 0 && (best_.length <= bound_ || is_stopped)) ||
           best_.spent >= options_.effort;
  }

  void try_known(std::size_t index) {
    const DeviceOrders& known = options_.known[index];
    best_.spent += static_cast<std::int64_t>(p_.ops()) / 2;
    const auto times = times_of(p_, known);
    if (!times) return;
    known_.emplace_back(times->length, index);
    if (!has_room(p_, known) || (best_.length > 0 && times->length >= best_.length)) return;
    best_.length = times->length;
    best_.orders = known;
  }

  /// The length of a block; the largest time if it cannot be below `limit`, or if it is far off.
  OrderTime try_block(const OrderBlock& block, OrderTime limit = kNoLimit) {
    ListRules rules = rules_of(p_, block);
    // Pauses make a list longer than its orders need.
    if (limit != kNoLimit) rules.give_up = block.earliness < 0 ? limit : limit + limit / 20;
    ListResult result = schedule_by_list(p_, rules);
    best_.spent += static_cast<std::int64_t>(result.placed);
    if (!result.complete) return kNoLimit;
    OrderTime length = result.length;
    if (block.earliness >= 0 || block.delay_by_weight < 100 || block.delay_by_other < 100) {
      best_.spent += static_cast<std::int64_t>(p_.ops()) / 4;
      length = times_of(p_, result.orders)->length;  // without the pauses
    }
    if (best_.length == 0 || length < best_.length) {
      best_.length = length;
      best_.orders = std::move(result.orders);
    }
    return length;
  }

  void climb(std::vector<std::pair<OrderTime, OrderBlock>>& pool) {
    while (!done() && best_.spent < options_.effort / 3) {
      // A block of the pool, the better the likelier.
      const auto held = static_cast<std::uint32_t>(pool.size());
      const std::size_t i = std::min(dice_.below(held), dice_.below(held));
      OrderBlock block = pool[i].second;
      change(block);
      const OrderTime length = try_block(block, pool.back().first);
      if (length <= pool[i].first) {
        pool[i] = {length, block};
      } else if (length < pool.back().first) {
        pool.back() = {length, block};
      }
      std::stable_sort(pool.begin(), pool.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
    }
  }

  /// Lists again with the times of an order as due times, or with its places in the lists, by
  /// several rules.
  void list_again(const DeviceOrders& orders) {
    ListRules rules;
    take_starts(orders, rules.due_of_op);
    for (int i = 0; i < 24 && !done(); ++i) {
      if (i == 12) take_places(orders, rules.due_of_op);
      rules.weights_in_turn = i % 2 == 1;
      rules.delay_by_weight = static_cast<std::uint32_t>(i / 2 % 3) * 50;
      rules.delay_by_other = i / 6 % 2 == 0 ? 100 : 0;
      take_if_better(schedule_by_list(p_, rules));
    }
  }

  /// The length of a list without its pauses.
  OrderTime take_if_better(ListResult result) {
    best_.spent += static_cast<std::int64_t>(result.placed);
    if (!result.complete) return kNoLimit;
    best_.spent += static_cast<std::int64_t>(p_.ops()) / 4;
    const OrderTime length = times_of(p_, result.orders)->length;
    if (best_.length > 0 && length >= best_.length) return length;
    best_.length = length;
    best_.orders = std::move(result.orders);
    return length;
  }

  /// A list of places in time: each op as long as a device's mean one.
  void take_places(const DeviceOrders& orders, std::vector<OrderTime>& due) const {
    const std::vector<OrderTime> work = p_.work_by_device();
    for (std::size_t d = 0; d < orders.size(); ++d) {
      const auto ops = static_cast<OrderTime>(std::max<std::size_t>(1, orders[d].size()));
      for (std::size_t i = 0; i < orders[d].size(); ++i)
        due[orders[d][i]] = static_cast<OrderTime>(i) * (work[d] / ops);
    }
  }

  /// Begins with the times of an order as due times, moves some of them, and lists again.
  void refine(const DeviceOrders& from, std::int64_t until) {
    ListRules rules;
    take_starts(from, rules.due_of_op);
    OrderTime accepted = std::numeric_limits<OrderTime>::max();
    const OrderTime unit = std::max<OrderTime>(1, best_.length / std::max(1U, p_.micro_batches));
    std::vector<OrderTime> base = rules.due_of_op;
    for (int round = 0; !done() && best_.spent < until; ++round) {
      if (round > 0) move_some(rules.due_of_op, unit);
      rules.weights_in_turn = dice_.below(2) == 0;
      rules.delay_by_weight = dice_.below(3) * 50;
      rules.delay_by_other = dice_.below(2) == 0 ? 100 : dice_.below(101);
      if (round > 0) rules.give_up = accepted + accepted / 20;
      ListResult result = schedule_by_list(p_, rules);
      best_.spent += static_cast<std::int64_t>(result.placed);
      if (!result.complete) {
        rules.due_of_op = base;
        continue;
      }
      best_.spent += static_cast<std::int64_t>(p_.ops()) / 4;
      const OrderTime length = times_of(p_, result.orders)->length;
      if (length <= accepted) {
        accepted = length;
        take_starts(result.orders, base);
        if (length < best_.length) {
          best_.length = length;
          best_.orders = std::move(result.orders);
        }
      }
      rules.due_of_op = base;
    }
  }

  /// Moves single ops of the best order. Where there are few ops, moves soon find nothing more:
  /// then again from orders near it.
  void move_all() {
    const auto ops = static_cast<std::int64_t>(p_.ops());
    MoveRules rules{bound_, 0, options_.stop, 0};
    while (!done()) {
      DeviceOrders orders = best_.orders;
      rules.effort = std::min(2 * ops * ops, options_.effort - best_.spent);
      best_.spent += move_ops(p_, rules, dice_, orders);
      rules.shakes = 2 + dice_.below(6);
      const OrderTime length = times_of(p_, orders)->length;
      if (length > best_.length) continue;
      best_.length = length;
      best_.orders = std::move(orders);
    }
  }

  void take_starts(const DeviceOrders& orders, std::vector<OrderTime>& due) {
    due = times_of(p_, orders)->end;
    for (std::uint32_t op = 0; op < due.size(); ++op)
      due[op] -= p_.time(p_.kind_of(op), p_.stage_of(op), p_.micro_batch_of(op));
  }

  /// Moves the ops of some kinds, stages and micro-batches.
  void move_some(std::vector<OrderTime>& due, OrderTime unit) {
    const std::uint32_t times = 1 + dice_.below(3);
    for (std::uint32_t i = 0; i < times; ++i) {
      const std::uint32_t n = p_.stage_count();
      std::uint32_t first = dice_.below(n);
      std::uint32_t last = dice_.below(2) == 0 ? first : dice_.below(n);
      if (last < first) std::swap(first, last);
      std::uint32_t from = dice_.below(p_.micro_batches);
      std::uint32_t to = dice_.below(2) == 0 ? from : dice_.below(p_.micro_batches);
      if (to < from) std::swap(from, to);
      const auto kind = static_cast<OrderKind>(dice_.below(static_cast<std::uint32_t>(p_.kinds())));
      const auto by = static_cast<OrderTime>(2 * step() * static_cast<double>(unit));
      for (std::uint32_t s = first; s <= last; ++s) {
        for (std::uint32_t k = from; k <= to; ++k) due[p_.id(kind, s, k)] += by;
      }
    }
  }

  void change(OrderBlock& block) {
    const int times = 1 + static_cast<int>(dice_.below(3));
    for (int i = 0; i < times; ++i) change_once(block);
  }

  double step() {
    return (dice_.unit() - 0.5) * std::pow(2.0, -static_cast<double>(dice_.below(5)));
  }

  void change_once(OrderBlock& block) {
    const auto chunk = [&] {
      return dice_.below(static_cast<std::uint32_t>(block.forward.size()));
    };
    const auto pause = [&](double& value, double scale) {
      value = std::max(-0.1, value + scale * step());
    };
    switch (dice_.below(11)) {
      case 0:
        block.period = std::max(0.9, block.period + 0.2 * step());
        break;
      case 1:
      case 2:
        pause(block.forward[chunk()], 0.3);
        break;
      case 3:
      case 4:
        pause(block.backward[chunk()], 0.3);
        break;
      case 5:
        block.turn[chunk()] += step();
        break;
      case 6:
        if (std::abs(block.ahead) > 100) block.ahead = 0;
        block.ahead += 2 * step();
        break;
      case 7:
        block.weights_in_turn = !block.weights_in_turn;
        break;
      case 8:
        block.earliness = block.earliness < 0   ? 0.5 * dice_.unit()
                          : dice_.below(3) == 0 ? -1
                                                : std::abs(block.earliness + step());
        break;
      case 9:
        block.delay_by_weight = dice_.below(2) ? dice_.below(101) : 100 * dice_.below(2);
        break;
      default:
        if (dice_.below(2))
          block.delay_by_other = dice_.below(101);
        else
          block.weight_lag = std::max(0.0, block.weight_lag + step());
    }
  }

  const OrderProblem& p_;
  const OrderSearchOptions& options_;
  OrderTime bound_ = 0;
  FoundOrder best_;
  std::vector<std::pair<OrderTime, std::size_t>> known_;  ///< Those that run.
  Dice dice_;
};

}  // namespace

FoundOrder search_order(const OrderProblem& problem, const OrderSearchOptions& options) {
  return OrderSearch(problem, options).run();
}

}  // namespace plumbline
