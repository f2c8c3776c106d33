// A replay in time: devices are asked in the order in which they become free.
//
// SPDX-License-Identifier: MIT
#include "schedules/search/list_scheduler.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

#include "base/bug.h"

namespace plumbline {
namespace {

constexpr OrderTime kNever = std::numeric_limits<OrderTime>::max();
constexpr auto F = OrderKind::forward;
constexpr auto B = OrderKind::backward;
constexpr auto W = OrderKind::weight;

class ListRun {
 public:
  ListRun(const OrderProblem& problem, const ListRules& rules)
      : p_(problem),
        rules_(rules),
        by_device_(problem.stages_by_device()),
        end_(problem.ops(), -1),
        free_(problem.devices, 0),
        held_(problem.limits.size(), std::vector<std::int64_t>(problem.devices, 0)),
        asked_(problem.devices, kNever),
        tails_(problem.tails()),
        left_(problem.work_by_device()) {
    for (auto& next : next_) next.assign(problem.stage_count(), 0);
    result_.orders.resize(problem.devices);
    for (std::uint32_t d = 0; d < problem.devices; ++d)
      result_.orders[d].reserve(by_device_[d].size() * problem.kinds() * problem.micro_batches);
    for (const OrderLimit& limit : problem.limits) full_.push_back(full_of(limit));
  }

  ListResult run() {
    for (std::uint32_t d = 0; d < p_.devices; ++d) ask(d, 0);
    while (!queue_.empty() && result_.complete) {
      const auto [time, d] = queue_.top();
      queue_.pop();
      if (asked_[d] != time) continue;
      asked_[d] = kNever;
      decide(d, time);
    }
    result_.placed = ran_;
    PLUMBLINE_CHECK(ran_ == p_.ops() || !result_.complete, ran_, p_.ops());
    result_.length = length_of(free_, tails_);
    return std::move(result_);
  }

 private:
  struct Candidate {
    OrderKind kind = F;
    std::uint32_t stage = 0;
    OrderTime due = kNever;
    OrderTime ready = 0;
  };

  void ask(std::uint32_t d, OrderTime time) {
    time = std::max(time, free_[d]);
    if (time >= asked_[d]) return;
    asked_[d] = time;
    queue_.emplace(time, d);
  }

  OrderTime due(OrderKind kind, std::uint32_t s) const {
    if (!rules_.due_of_op.empty()) return rules_.due_of_op[p_.id(kind, s, next(kind, s))];
    return rules_.due[static_cast<std::size_t>(kind)][s] +
           rules_.period * next_[static_cast<std::size_t>(kind)][s];
  }
  std::uint32_t next(OrderKind kind, std::uint32_t s) const {
    return next_[static_cast<std::size_t>(kind)][s];
  }
  OrderTime time(OrderKind kind, std::uint32_t s) const { return p_.time(kind, s, next(kind, s)); }

  /// The next F or I of a stage, if what it needs has been scheduled.
  std::optional<Candidate> candidate(OrderKind kind, std::uint32_t s) const {
    const std::uint32_t k = next(kind, s);
    if (k == p_.micro_batches) return std::nullopt;
    OrderTime ready = 0;
    if (kind == F) {
      if (s > 0) {
        if (next(F, s - 1) <= k) return std::nullopt;
        ready = end_[p_.id(F, s - 1, k)] + p_.stages[s - 1].to_next;
      }
    } else {
      if (next(F, s) <= k) return std::nullopt;
      if (s + 1 < p_.stage_count()) {
        if (next(B, s + 1) <= k) return std::nullopt;
        ready = end_[p_.id(B, s + 1, k)] + p_.stages[s + 1].to_previous;
      }
    }
    const OrderTime when = due(kind, s);
    if (rules_.earliness) ready = std::max(ready, when - *rules_.earliness);
    return Candidate{kind, s, when, ready};
  }

  /// The W that is due first, if any can run.
  std::optional<Candidate> weight(std::uint32_t d) const {
    std::optional<Candidate> best;
    if (!p_.split) return best;
    for (const std::uint32_t s : by_device_[d]) {
      if (next(W, s) == next(B, s)) continue;
      const OrderTime when = due(W, s);
      if (!best || when < best->due) best = Candidate{W, s, when, 0};
    }
    return best;
  }

  void decide(std::uint32_t d, OrderTime now) {
    candidates_.clear();
    for (const std::uint32_t s : by_device_[d]) {
      if (const auto f = candidate(F, s)) candidates_.push_back(*f);
      if (const auto b = candidate(B, s)) candidates_.push_back(*b);
    }
    const std::optional<Candidate> w = weight(d);
    if (w && rules_.weights_in_turn) candidates_.push_back(*w);
    std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
      return std::tie(a.due, b.kind, a.stage) < std::tie(b.due, a.kind, b.stage);
    });
    OrderTime awaited = kNever;  // the first more urgent op that arrives later
    bool blocked = false;
    for (const Candidate& c : candidates_) {
      if (c.kind != W && !room_for(d, c)) {
        blocked = true;
        continue;
      }
      if (c.ready > now) {
        awaited = std::min(awaited, c.ready);
        continue;
      }
      if (may_delay(c, now, awaited)) return take(d, c, now);
    }
    if (w && !rules_.weights_in_turn && (blocked || may_delay(*w, now, awaited)))
      return take(d, *w, now);
    if (awaited != kNever) ask(d, awaited);
  }

  bool may_delay(const Candidate& c, OrderTime now, OrderTime awaited) const {
    if (awaited == kNever) return true;
    const OrderTime own = time(c.kind, c.stage);
    const OrderTime share = c.kind == W ? rules_.delay_by_weight : rules_.delay_by_other;
    return (now + own - awaited) * 100 <= own * share;
  }

  void take(std::uint32_t d, const Candidate& c, OrderTime now) {
    const std::uint32_t k = next_[static_cast<std::size_t>(c.kind)][c.stage]++;
    const std::uint32_t op = p_.id(c.kind, c.stage, k);
    result_.orders[d].push_back(op);
    ++ran_;
    const OrderTime own = p_.time(c.kind, c.stage, k);
    const OrderTime end = now + own;
    end_[op] = free_[d] = end;
    left_[d] -= own;
    if (rules_.give_up && end + left_[d] + tails_[d] > *rules_.give_up) result_.complete = false;
    const bool frees = p_.split ? c.kind == W : c.kind == B;
    for (std::size_t l = 0; l < held_.size(); ++l) {
      const OrderLimit& limit = p_.limits[l];
      if (c.kind == F) held_[l][d] += limit.forward[c.stage];
      if (c.kind == B) held_[l][d] += limit.backward[c.stage];
      if (frees) held_[l][d] -= limit.forward[c.stage] + limit.backward[c.stage];
    }
    ask(d, end);
    if (c.kind == F && c.stage + 1 < p_.stage_count())
      ask(p_.stages[c.stage + 1].device, end + p_.stages[c.stage].to_next);
    if (c.kind == B && c.stage > 0)
      ask(p_.stages[c.stage - 1].device, end + p_.stages[c.stage].to_previous);
  }

  /// What a whole micro-batch takes at most, per device.
  std::vector<std::int64_t> full_of(const OrderLimit& limit) const {
    std::vector<std::int64_t> full(p_.devices);
    for (std::uint32_t d = 0; d < p_.devices; ++d) {
      for (const std::uint32_t s : by_device_[d])
        full[d] += limit.forward[s] + limit.backward[s] + limit.during[s];
    }
    return full;
  }

  bool room_for(std::uint32_t d, const Candidate& c) {
    for (std::size_t l = 0; l < held_.size(); ++l) {
      const OrderLimit& limit = p_.limits[l];
      const std::int64_t adds = c.kind == F ? limit.forward[c.stage] : limit.backward[c.stage];
      const std::int64_t during = c.kind == F ? 0 : limit.during[c.stage];
      if (adds == 0 && during == 0) continue;
      const std::int64_t room = limit.room[d] - held_[l][d] - adds;
      if (room < during) return false;
      if (room >= full_[l][d]) continue;
      // A whole backward has released its room when the next op begins.
      const bool releases = !p_.split && c.kind == B;
      const std::int64_t after =
          releases ? room + limit.forward[c.stage] + limit.backward[c.stage] : room;
      if (!can_finish(d, c, limit, after)) return false;
    }
    return true;
  }

  /// Whether the device can finish what it has begun, micro-batch by micro-batch, after `c` and
  /// with this room left.
  bool can_finish(std::uint32_t d, const Candidate& c, const OrderLimit& limit, std::int64_t room) {
    const auto& stages = by_device_[d];
    ++next_[static_cast<std::size_t>(c.kind)][c.stage];
    const OrderKind last = p_.split ? W : B;
    std::uint32_t from = p_.micro_batches;
    std::uint32_t to = 0;
    for (const std::uint32_t s : stages) {
      from = std::min(from, next(last, s));
      to = std::max(to, next(F, s));
    }
    bool possible = true;
    for (std::uint32_t k = from; k < to && possible; ++k) {
      std::int64_t adds = 0;  // beside what it holds now
      for (const std::uint32_t s : stages) {
        if (next(F, s) <= k) adds += limit.forward[s];
        possible = possible && adds <= room;
      }
      for (std::size_t i = stages.size(); i-- > 0;) {
        const std::uint32_t s = stages[i];
        if (next(last, s) > k) continue;
        if (next(B, s) <= k) {
          possible = possible && adds + limit.backward[s] + limit.during[s] <= room;
          adds += limit.backward[s];
        }
        adds -= limit.forward[s] + limit.backward[s];
      }
      room -= adds;  // below 0: what it frees
    }
    --next_[static_cast<std::size_t>(c.kind)][c.stage];
    return possible;
  }

  const OrderProblem& p_;
  const ListRules& rules_;
  std::vector<std::vector<std::uint32_t>> by_device_;
  std::vector<OrderTime> end_, free_;
  std::array<std::vector<std::uint32_t>, kOrderKinds> next_;
  std::vector<std::vector<std::int64_t>> held_, full_;
  std::vector<OrderTime> asked_;
  std::vector<OrderTime> tails_;
  std::vector<OrderTime> left_;  ///< The work that each device still has.
  std::priority_queue<std::pair<OrderTime, std::uint32_t>,
                      std::vector<std::pair<OrderTime, std::uint32_t>>, std::greater<>>
      queue_;
  std::vector<Candidate> candidates_;
  std::size_t ran_ = 0;
  ListResult result_;
};

}  // namespace

ListResult schedule_by_list(const OrderProblem& problem, const ListRules& rules) {
  return ListRun(problem, rules).run();
}

}  // namespace plumbline
