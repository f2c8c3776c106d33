// Gaps are read along the ops of each device.
//
// SPDX-License-Identifier: MIT
#include "calibrate/diagnosis/idle_time.h"

#include <algorithm>

namespace plumbline {
namespace {

class GapReader {
 public:
  GapReader(const RecordedRun& run, const RunIteration& iteration, const RunCosts& costs)
      : run_(run), iteration_(iteration), costs_(costs), inputs_(run, iteration) {}

  DeviceTime read(std::size_t device) {
    time_ = {};
    device_ = device;
    SimTime cursor = iteration_.begin;
    bool is_first = true;
    for (const RunOp& op : iteration_.ops[device]) {
      if (is_first)
        add(RunIdle::fill, cursor, op.work.begin);
      else
        split(op, cursor);
      is_first = false;
      const SimTime end = std::max(cursor, op.work.end);
      time_.ops += end - std::max(cursor, op.work.begin);
      cursor = end;
    }
    if (const auto& update = iteration_.updates[device]) {
      late(cursor, update->begin);
      const SimTime end = std::max(cursor, update->end);
      time_.update += end - std::max(cursor, update->begin);
      cursor = end;
    }
    const SimTime ended = std::max(cursor, iteration_.end);
    const Duration collective = covered(run_.collectives[device], cursor, ended);
    of(RunIdle::collective) += collective;
    of(RunIdle::drain) += ended - cursor - collective;
    const SimTime next = iteration_.begin + iteration_.time();
    add(RunIdle::between, ended, next);
    take_off(ended - next);
    return time_;
  }

 private:
  Duration& of(RunIdle cause) { return time_.idle[static_cast<std::size_t>(cause)]; }
  void add(RunIdle cause, SimTime begin, SimTime end) {
    if (end > begin) of(cause) += end - begin;
  }

  /// Where the next iteration begins before this one has ended on all devices, devices neither
  /// drain nor fill for so long: they have to do with the other one.
  void take_off(Duration overlap) {
    for (const RunIdle cause : {RunIdle::drain, RunIdle::collective, RunIdle::fill}) {
      const Duration part = std::clamp(overlap, Duration{}, of(cause));
      of(cause) -= part;
      overlap -= part;
    }
  }

  /// The host was late, except while a collective ran or it waited for a send.
  void late(SimTime begin, SimTime end) {
    if (end <= begin) return;
    const Duration collective = covered(run_.collectives[device_], begin, end);
    const Duration send =
        std::min(end - begin - collective, waited_for(run_.sends[device_], begin, end));
    of(RunIdle::collective) += collective;
    of(RunIdle::send) += send;
    of(RunIdle::host) += end - begin - collective - send;
  }

  /// A gap before an op. Up to the end of the producer the device waited for it, then for its data.
  void split(const RunOp& op, SimTime begin) {
    const SimTime end = op.work.begin;
    if (end <= begin) return;
    const OpInput input = inputs_.of(op);
    if (!input.producer) return late(begin, end);
    const SimTime made = std::clamp(input.producer->work.end, begin, end);
    const SimTime usual = input.producer->work.end + costs_.latency().value_or(Duration{});
    const SimTime there = std::clamp(input.arrival.value_or(usual), made, end);
    const OpCosts* const typical =
        costs_.find(input.producer->op.stage.value, input.producer->op.kind);
    const Duration excess =
        typical ? std::max(Duration{}, input.producer->work.length() - typical->time) : Duration{};
    const Duration straggled = std::min(excess, made - begin);
    of(RunIdle::straggler) += straggled;
    of(RunIdle::dependency) += made - begin - straggled;
    add(RunIdle::transfer, made, there);
    late(there, end);
  }

  const RecordedRun& run_;
  const RunIteration& iteration_;
  const RunCosts& costs_;
  OpInputs inputs_;
  DeviceTime time_;
  std::size_t device_ = 0;
};

}  // namespace

std::string_view name(RunIdle cause) {
  constexpr std::string_view names[] = {"fill", "dependency", "straggler", "transfer", "collective",
                                        "send", "host",       "drain",     "between"};
  return names[static_cast<std::size_t>(cause)];
}

std::string_view meaning(RunIdle cause) {
  constexpr std::string_view meanings[] = {"before the first op of an iteration",
                                           "another device had not made the input yet",
                                           "the same, as its op took longer than usual",
                                           "the input was on its way",
                                           "a collective ran that is no part of an op",
                                           "the CPU waited until another rank took what it sent",
                                           "all was there: the CPU began the op or update late",
                                           "behind the last op, until all devices end",
                                           "until the next iteration begins"};
  return meanings[static_cast<std::size_t>(cause)];
}

Duration DeviceTime::all_idle() const {
  Duration sum{};
  for (const Duration one : idle) sum += one;
  return sum;
}

std::vector<DeviceTime> device_times(const RecordedRun& run, const RunIteration& iteration,
                                     const RunCosts& costs) {
  GapReader reader(run, iteration, costs);
  std::vector<DeviceTime> times;
  for (std::size_t d = 0; d < run.devices.size(); ++d) times.push_back(reader.read(d));
  return times;
}

std::vector<DeviceTime> mean_device_times(const RecordedRun& run, const RunCosts& costs) {
  std::vector<DeviceTime> sums(run.devices.size());
  const auto timed = run.timed();
  for (const std::size_t k : timed) {
    const auto times = device_times(run, run.iterations[k], costs);
    for (std::size_t d = 0; d < sums.size(); ++d) {
      sums[d].ops += times[d].ops;
      sums[d].update += times[d].update;
      for (std::size_t i = 0; i < kRunIdles; ++i) sums[d].idle[i] += times[d].idle[i];
    }
  }
  const auto count = static_cast<std::int64_t>(timed.size());
  for (DeviceTime& sum : sums) {
    sum.ops /= count;
    sum.update /= count;
    for (Duration& one : sum.idle) one /= count;
  }
  return sums;
}

}  // namespace plumbline
