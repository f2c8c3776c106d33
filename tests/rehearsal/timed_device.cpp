// Events in the order of their times, and what shares a device between two of them.
//
// SPDX-License-Identifier: MIT
#include "tests/rehearsal/timed_device.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/bug.h"
#include "base/random.h"

namespace plumbline {

struct TimedWorks::Work : FakeWork {
  FakeDemand demand = 0;
  double left = 1;  ///< The share of the task that is left.
  double rate = 0;  ///< The present share per nanosecond.
  bool begun = false;
  bool was_held = false;
  bool was_looked_at = false;
  std::vector<Pointer> behind;  ///< Later work of other streams on its connection.
  std::uint64_t ends_at(std::uint64_t clock) const {
    return clock + static_cast<std::uint64_t>(std::ceil(std::max(left, 0.0) / rate));
  }
};

TimedWorks::TimedWorks(TimedDevice device, std::uint64_t seed)
    : device_(device), seed_(seed), last_on_(device.connections) {}

std::uint64_t TimedWorks::host_time() const {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - zero_)
          .count());
}

/// The time between the end of one task and the beginning of the other.
std::uint64_t TimedWorks::between(const FakeWork& before, const FakeWork& after) const {
  const bool crosses = before.lane != after.lane;
  if (after.task.in_graph) {
    if (!before.task.in_graph) return 0;
    return crosses ? device_.node_crossing : after.task.is_kernel ? device_.gap_in_graph : 0;
  }
  if (crosses) return before.task.in_graph ? 0 : device_.crossing;
  return after.task.is_kernel ? device_.gap : 0;
}

FakeWorkPointer TimedWorks::add(FakeTask task, std::size_t lane,
                                const std::vector<FakeWorkPointer>& predecessors) {
  if (pending_.size() <= lane) pending_.resize(lane + 1);
  while (task.is_kernel && !task.in_graph && pending_[lane] >= device_.max_pending) {
    advance(host_time());
    if (pending_[lane] >= device_.max_pending) wait_a_little();
  }
  const auto work = std::make_shared<Work>();
  work->task = std::move(task);
  work->lane = lane;
  work->begin = work->task.in_graph ? 0 : host_time() + device_.launch;
  ++open_;
  if (work->task.is_kernel) ++pending_[lane];
  for (const FakeWorkPointer& before : predecessors) {
    if (before == nullptr) continue;
    if (before->done) {
      work->begin = std::max(work->begin, before->end + between(*before, *work));
    } else {
      ++work->unmet;
      before->next.push_back(work);
    }
  }
  if (!work->task.in_graph) {
    Pointer& last = last_on_[lane % last_on_.size()];
    if (last != nullptr && !last->begun && last->lane != lane) {
      ++work->unmet;
      last->behind.push_back(work);
    }
    last = work;
  }
  if (work->unmet == 0) ready(work);
  return work;
}

void TimedWorks::ready(const Pointer& work) {
  starts_.push({std::max(work->begin, clock_), numbered_++, work});
}

void TimedWorks::begin(const Pointer& work) {
  if (!work->begun) {
    work->begin = clock_;
    work->begun = true;
    for (const Pointer& next : std::exchange(work->behind, {}))
      if (--next->unmet == 0) ready(next);
  }
  // Nobody looked when the host let it go: it is held until somebody does, by the host's clock.
  if (work->task.holds != nullptr && !work->was_held &&
      (!std::exchange(work->was_looked_at, true) || work->task.holds())) {
    held_.push_back(work);
    return;
  }
  work->demand = act(*work);
  if (work->demand.nanoseconds == 0 && work->demand.bytes == 0) {
    end(work);
    return;
  }
  if (work->demand.sms > 0) {
    const double by = 1 + device_.spread * (2 * random_uniform(seed_, numbered_++) - 1);
    work->demand.nanoseconds =
        static_cast<std::uint64_t>(static_cast<double>(work->demand.nanoseconds) * by);
  }
  running_.push_back(work);
}

bool TimedWorks::release() {
  constexpr std::uint64_t kMostPatience = 500'000'000;
  const std::size_t held = held_.size();
  for (const Pointer& work : std::exchange(held_, {})) {
    work->was_held = clock_ - work->begin >= kMostPatience;
    begin(work);
  }
  return held_.size() < held;
}

void TimedWorks::end(const Pointer& work) {
  work->end = clock_;
  work->done = true;
  --open_;
  if (work->task.is_kernel) --pending_[work->lane];
  if (!work->task.what.empty()) on_done(*work);
  for (const FakeWorkPointer& next : std::exchange(work->next, {})) {
    next->begin = std::max(next->begin, work->end + between(*work, *next));
    if (--next->unmet == 0) ready(std::static_pointer_cast<Work>(next));
  }
}

void TimedWorks::set_rates() {
  // SMs that several want are shared by them; then what that leaves of memory bandwidth.
  std::vector<double> wanted(running_.size());
  double all_wanted = 0;
  for (std::size_t i = 0; i < running_.size(); ++i) {
    Work& work = *running_[i];
    double slower = 1;
    if (work.demand.sms > 0) {
      double held = 0;
      for (const Pointer& other : running_) {
        const FakeTask& a = work.task;
        const FakeTask& b = other->task;
        if (a.gpu == b.gpu && a.first_sm < b.first_sm + b.sms && b.first_sm < a.first_sm + a.sms)
          held += other->demand.sms;
      }
      slower = std::max(1.0, held / work.task.sms);
    }
    double nanoseconds = std::max(static_cast<double>(work.demand.nanoseconds), 1.0) * slower;
    if (work.demand.sms > 0) {
      const double max =
          std::min(device_.bandwidth_of_sm * work.demand.sms / slower, device_.memory_bandwidth);
      nanoseconds = std::max(nanoseconds, work.demand.bytes / max * 1e9);
    }
    work.rate = 1 / nanoseconds;
    wanted[i] = work.demand.bytes / nanoseconds * 1e9;
    all_wanted += wanted[i];
  }
  if (all_wanted <= device_.memory_bandwidth) return;
  for (std::size_t i = 0; i < running_.size(); ++i)
    if (wanted[i] > 0) running_[i]->rate *= device_.memory_bandwidth / all_wanted;
}

void TimedWorks::advance(std::uint64_t until) {
  run(until);
  if (release()) run(until);
}

void TimedWorks::run(std::uint64_t until) {
  bool is_known = false;
  while (true) {
    if (!is_known) set_rates();
    is_known = true;
    std::uint64_t next_end = kNever;
    for (const Pointer& work : running_) next_end = std::min(next_end, work->ends_at(clock_));
    const std::uint64_t next_start = starts_.empty() ? kNever : starts_.top().at;
    const std::uint64_t to = std::min({next_end, next_start, std::max(until, clock_)});
    for (const Pointer& work : running_)
      work->left -= static_cast<double>(to - clock_) * work->rate;
    clock_ = to;
    if (next_end <= to) {
      const auto ended =
          std::stable_partition(running_.begin(), running_.end(),
                                [&](const Pointer& work) { return work->left > work->rate * 0.5; });
      std::vector<Pointer> over(ended, running_.end());
      running_.erase(ended, running_.end());
      for (const Pointer& work : over) end(work);
      is_known = false;
    } else if (next_start <= to) {
      const Pointer work = starts_.top().work;
      starts_.pop();
      begin(work);
      is_known = false;
    } else {
      return;
    }
  }
}

/// Until something may have happened: other threads of the host get their turn.
void TimedWorks::wait_a_little() {
  std::uint64_t next = starts_.empty() ? kNever : starts_.top().at;
  for (const Pointer& work : running_) next = std::min(next, work->ends_at(clock_));
  if (next == kNever && !held_.empty()) next = host_time() + 50'000;
  PLUMBLINE_CHECK(next != kNever, "the host waits for a device that has nothing to do");
  const std::uint64_t host = host_time();
  pause_(std::chrono::nanoseconds(next - std::min(next, host)));
}

void TimedWorks::finish(const FakeWorkPointer& work) {
  if (work == nullptr) return;
  while (true) {
    advance(host_time());
    if (work->done) return;
    wait_a_little();
  }
}

void TimedWorks::finish_all() {
  while (true) {
    advance(host_time());
    if (open_ == 0) return;
    wait_a_little();
  }
}

}  // namespace plumbline
