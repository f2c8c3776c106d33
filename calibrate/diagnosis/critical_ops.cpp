// A walk from the end of an iteration to its begin.
//
// SPDX-License-Identifier: MIT
#include "calibrate/diagnosis/critical_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace plumbline {
namespace {

class Walk {
 public:
  Walk(const RecordedRun& run, const RunIteration& iteration, const RunCosts& costs)
      : iteration_(iteration),
        usual_(costs.latency().value_or(Duration{})),
        inputs_(run, iteration),
        left_(iteration.time()) {
    for (std::size_t d = 0; d < iteration.ops.size(); ++d) {
      for (std::size_t i = 0; i < iteration.ops[d].size(); ++i)
        places_[iteration.ops[d][i].op] = {d, i};
    }
  }

  std::map<std::string, Duration> walk() {
    const std::size_t device = last_device();
    const RunOp& last = iteration_.ops[device].back();
    add("between iterations", iteration_.begin + iteration_.time() - iteration_.end);
    if (const auto& update = iteration_.updates[device]) {
      const SimTime begin = std::max(update->begin, last.work.end);
      add("updates", std::max(update->end, last.work.end) - begin);
      add("from the last op to the update", begin - last.work.end);
    }
    const RunOp* op = &last;
    SimTime until = op->work.end;  // ops before it do not count beyond here
    while (op) op = step(*op, until);
    return std::move(shares_);
  }

 private:
  void add(const std::string& what, Duration time) {
    time = std::min(time, left_);
    if (time.count() <= 0) return;
    shares_[what] += time;
    left_ -= time;
  }

  std::size_t last_device() const {
    std::size_t last = 0;
    for (std::size_t d = 0; d < iteration_.ops.size(); ++d) {
      if (end_of(d) > end_of(last)) last = d;
    }
    return last;
  }

  SimTime end_of(std::size_t device) const {
    const SimTime end = iteration_.ops[device].back().work.end;
    const auto& update = iteration_.updates[device];
    return update ? std::max(end, update->end) : end;
  }

  /// Adds an op and what it waited for; returns what decided its begin.
  const RunOp* step(const RunOp& op, SimTime& until) {
    const auto [device, place] = places_.at(op.op);
    add(fmt::format("ops of device {}", device), until - std::min(until, op.work.begin));
    until = std::min(until, op.work.begin);
    const RunOp* const before = place > 0 ? &iteration_.ops[device][place - 1] : nullptr;
    const OpInput input = inputs_.of(op);
    if (!input.producer) {
      if (!before) {
        add("before the first op", until - iteration_.begin);
        return nullptr;
      }
      return after(*before, before->work.end, until);
    }
    const SimTime made = input.producer->work.end;
    const SimTime there =
        std::clamp(input.arrival.value_or(made + usual_), made, std::max(made, op.work.begin));
    if (before && before->work.end >= there) return after(*before, before->work.end, until);
    // The device that receives may have begun to do so only after its op before.
    const bool was_late = before && before->work.end > made;
    return after(was_late ? *before : *input.producer, there, until);
  }

  /// Goes on with `op`: from its end to `there` is a transfer, from there on it is between ops.
  const RunOp* after(const RunOp& op, SimTime there, SimTime& until) {
    const SimTime arrived = std::min(until, there);
    const SimTime ended = std::min(arrived, op.work.end);
    add("between ops", until - arrived);
    add("transfers", arrived - ended);
    until = ended;
    return &op;
  }

  const RunIteration& iteration_;
  Duration usual_;
  OpInputs inputs_;
  Duration left_;  ///< Of the iteration's time; the chain ends where it is used up.
  std::map<Op, std::pair<std::size_t, std::size_t>> places_;
  std::map<std::string, Duration> shares_;
};

}  // namespace

std::vector<CriticalShare> critical_shares(const RecordedRun& run, const RunIteration& iteration,
                                           const RunCosts& costs) {
  std::vector<CriticalShare> shares;
  for (const auto& [what, time] : Walk(run, iteration, costs).walk())
    shares.push_back({what, time});
  std::stable_sort(shares.begin(), shares.end(),
                   [](const CriticalShare& a, const CriticalShare& b) { return a.time > b.time; });
  return shares;
}

}  // namespace plumbline
