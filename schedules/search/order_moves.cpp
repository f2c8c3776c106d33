// After a move, only the times of the ops that began later are computed again.
//
// SPDX-License-Identifier: MIT
#include "schedules/search/order_moves.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace plumbline {
namespace {

/// A place in the lists.
struct Place {
  std::uint32_t device = 0;
  std::uint32_t index = 0;
};

class MoveSearch {
 public:
  MoveSearch(const OrderProblem& problem, Dice& dice, DeviceOrders& orders)
      : p_(problem),
        dice_(dice),
        orders_(orders),
        places_(problem.ops()),
        facts_(problem.ops()),
        tails_(problem.tails()),
        next_(problem.devices),
        free_(problem.devices),
        is_awake_(problem.devices, false),
        spent_(static_cast<std::int64_t>(problem.ops())) {
    for (std::uint32_t d = 0; d < orders_.size(); ++d) number(d, 0, orders_[d].size());
    for (std::uint32_t op = 0; op < facts_.size(); ++op) facts_[op] = facts_of(op);
    OrderTimes times = *times_of(problem, orders);
    end_ = std::move(times.end);
    length_ = times.length;
  }

  std::int64_t run(OrderTime bound, std::int64_t effort, const std::atomic<bool>* stop) {
    find_path();
    while (spent_ < effort && length_ > bound && !path_.empty() && !(stop && *stop)) {
      if (moves(path_[dice_.below(static_cast<std::uint32_t>(path_.size()))])) find_path();
    }
    return spent_;
  }

  /// Moves ops, wherever they are, even if the order is then longer.
  void shake(std::uint32_t times) {
    length_ = std::numeric_limits<OrderTime>::max();
    for (std::uint32_t i = 0; i < times; ++i)
      moves(dice_.below(static_cast<std::uint32_t>(places_.size())));
    length_ = latest().first;
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  /// What the times of an op follow from, apart from its place.
  struct Facts {
    OrderTime time = 0;
    OrderTime lag = 0;  ///< From the end of `need` to its data.
    std::uint32_t need =
        kNone;  ///< The op on another device, or of the last stage, whose data it takes.
    std::uint32_t wakes = kNone;  ///< The device whose op takes its data.
  };

  Facts facts_of(std::uint32_t op) const {
    Facts facts;
    const std::uint32_t s = p_.stage_of(op);
    const std::uint32_t m = p_.micro_batch_of(op);
    const OrderKind kind = p_.kind_of(op);
    facts.time = p_.time(kind, s, m);
    if (kind == OrderKind::forward) {
      if (s > 0) {
        facts.need = p_.id(kind, s - 1, m);
        facts.lag = p_.stages[s - 1].to_next;
      }
      if (s + 1 < p_.stage_count()) facts.wakes = p_.stages[s + 1].device;
    } else if (kind == OrderKind::backward) {
      if (s + 1 < p_.stage_count()) {
        facts.need = p_.id(kind, s + 1, m);
        facts.lag = p_.stages[s + 1].to_previous;
      }
      if (s > 0) facts.wakes = p_.stages[s - 1].device;
    }
    return facts;
  }

  /// Moves an op to a random place near its own, if the order then runs, has room and is no longer.
  bool moves(std::uint32_t op) {
    ++spent_;
    const Place from = places_[op];
    const auto& list = orders_[from.device];
    const std::uint32_t far = 1 + dice_.below(dice_.below(3) == 0 ? 12 : 3);
    const bool earlier = dice_.below(2) == 0;
    if (earlier ? from.index < far : from.index + far >= list.size()) return false;
    const std::uint32_t to = earlier ? from.index - far : from.index + far;
    if (!keeps_needs(from, to)) return false;
    const std::uint32_t first = std::min(from.index, to);
    const OrderTime since = start(list[first]);
    move(from.device, from.index, to);
    spent_ += static_cast<std::int64_t>(list.size()) / 8;
    if (has_room_on(from.device)) {
      const bool is_no_longer = time_again(from.device, first, since);
      spent_ += static_cast<std::int64_t>(old_.size()) / 4;
      if (is_no_longer) return true;
    }
    move(from.device, to, from.index);
    return false;
  }

  OrderTime start(std::uint32_t op) const { return end_[op] - facts_[op].time; }

  /// Times all ops again that began at `since` or later; on `device`, from the place `first` on.
  /// Returns whether the order is no longer than before; if not, all times are as before.
  bool time_again(std::uint32_t device, std::uint32_t first, OrderTime since) {
    old_.clear();
    awake_.clear();
    for (std::uint32_t d = 0; d < orders_.size(); ++d) {
      const auto& list = orders_[d];
      const auto begin =
          d == device ? list.begin() + first
                      : std::partition_point(list.begin(), list.end(),
                                             [&](std::uint32_t op) { return start(op) < since; });
      next_[d] = static_cast<std::size_t>(begin - list.begin());
      free_[d] = next_[d] == 0 ? 0 : end_[list[next_[d] - 1]];
      awake_.push_back(d);
      is_awake_[d] = true;
    }
    for (std::uint32_t d = 0; d < orders_.size(); ++d) {
      for (std::size_t i = next_[d]; i < orders_[d].size(); ++i) {
        const std::uint32_t op = orders_[d][i];
        old_.emplace_back(op, end_[op]);
        end_[op] = -1;
      }
    }
    std::size_t ran = 0;
    bool is_no_longer = true;
    while (!awake_.empty()) {
      const std::uint32_t d = awake_.back();
      awake_.pop_back();
      is_awake_[d] = false;
      if (is_no_longer) is_no_longer = run_device(d, ran);
    }
    if (is_no_longer && ran == old_.size()) {
      length_ = latest().first;
      return true;
    }
    for (const auto& [op, end] : old_) end_[op] = end;
    return false;
  }

  /// Runs a device as far as its data is there. False: the order is longer than before.
  bool run_device(std::uint32_t d, std::size_t& ran) {
    const auto& list = orders_[d];
    for (; next_[d] < list.size(); ++next_[d]) {
      const std::uint32_t op = list[next_[d]];
      const Facts& facts = facts_[op];
      OrderTime at = free_[d];
      if (facts.need != kNone) {
        if (end_[facts.need] < 0) return true;
        at = std::max(at, end_[facts.need] + facts.lag);
      }
      free_[d] = end_[op] = at + facts.time;
      ++ran;
      if (free_[d] + tails_[d] > length_) return false;
      if (facts.wakes != kNone && !is_awake_[facts.wakes]) {
        is_awake_[facts.wakes] = true;
        awake_.push_back(facts.wakes);
      }
    }
    return true;
  }

  void number(std::uint32_t d, std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i)
      places_[orders_[d][i]] = {d, static_cast<std::uint32_t>(i)};
  }

  void move(std::uint32_t d, std::uint32_t from, std::uint32_t to) {
    auto& list = orders_[d];
    if (from < to) {
      std::rotate(list.begin() + from, list.begin() + from + 1, list.begin() + to + 1);
    } else {
      std::rotate(list.begin() + to, list.begin() + from, list.begin() + from + 1);
    }
    number(d, std::min(from, to), std::max(from, to) + std::size_t{1});
  }

  /// Whether the op stays behind what it needs on its own device, before what needs it, and among
  /// its kind in the turn of micro-batches: gradients are then added up in the same order.
  bool keeps_needs(Place from, std::uint32_t to) const {
    const auto& list = orders_[from.device];
    const std::uint32_t op = list[from.index];
    const std::uint32_t first = std::min(from.index, to);
    const std::uint32_t last = std::max(from.index, to);
    for (std::uint32_t i = first; i <= last; ++i) {
      if (i == from.index || p_.stage_of(list[i]) != p_.stage_of(op)) continue;
      if (p_.micro_batch_of(list[i]) == p_.micro_batch_of(op)) return false;
      if (p_.kind_of(list[i]) == p_.kind_of(op)) return false;
    }
    return true;
  }

  bool has_room_on(std::uint32_t d) const {
    for (const OrderLimit& limit : p_.limits) {
      std::int64_t held = 0;
      for (const std::uint32_t op : orders_[d]) {
        const std::uint32_t s = p_.stage_of(op);
        const OrderKind kind = p_.kind_of(op);
        if (kind == OrderKind::forward) held += limit.forward[s];
        if (kind == OrderKind::backward) held += limit.backward[s];
        const std::int64_t during = kind == OrderKind::backward ? limit.during[s] : 0;
        if (held + during > limit.room[d]) return false;
        const bool frees = p_.split ? kind == OrderKind::weight : kind == OrderKind::backward;
        if (frees) held -= limit.forward[s] + limit.backward[s];
      }
    }
    return true;
  }

  /// The ops of a longest path, from its end to its begin.
  void find_path() {
    path_.clear();
    for (std::uint32_t op = latest().second; op != kNone; op = before(op)) path_.push_back(op);
  }

  /// The largest end of a device with its tail, and the device's last op; of equals the one with
  /// the lowest number.
  std::pair<OrderTime, std::uint32_t> latest() const {
    std::pair<OrderTime, std::uint32_t> latest{0, kNone};
    for (std::uint32_t d = 0; d < orders_.size(); ++d) {
      if (orders_[d].empty()) continue;
      const std::uint32_t last = orders_[d].back();
      const OrderTime end = end_[last] + tails_[d];
      if (latest.second == kNone || end > latest.first ||
          (end == latest.first && last < latest.second))
        latest = {end, last};
    }
    return latest;
  }

  /// The op that this one waited for last; kNone: it began the run.
  std::uint32_t before(std::uint32_t op) const {
    if (start(op) == 0) return kNone;
    const Place place = places_[op];
    if (place.index > 0) {
      const std::uint32_t previous = orders_[place.device][place.index - 1];
      if (end_[previous] == start(op)) return previous;
    }
    return facts_[op].need;
  }

  const OrderProblem& p_;
  Dice& dice_;
  DeviceOrders& orders_;
  std::vector<Place> places_;     ///< By op.
  std::vector<Facts> facts_;      ///< By op.
  std::vector<OrderTime> end_;    ///< By op.
  std::vector<OrderTime> tails_;  ///< By device.
  OrderTime length_ = 0;          ///< What is to be short.
  std::vector<std::uint32_t> path_;
  // For time_again(): the devices' next ops and times, those to ask, and the ends before.
  std::vector<std::size_t> next_;
  std::vector<OrderTime> free_;
  std::vector<bool> is_awake_;
  std::vector<std::uint32_t> awake_;
  std::vector<std::pair<std::uint32_t, OrderTime>> old_;
  std::int64_t spent_ = 0;
};

}  // namespace

std::int64_t move_ops(const OrderProblem& problem, const MoveRules& rules, Dice& dice,
                      DeviceOrders& orders) {
  MoveSearch search(problem, dice, orders);
  if (rules.shakes > 0) search.shake(rules.shakes);
  return search.run(rules.bound, rules.effort, rules.stop);
}

}  // namespace plumbline
