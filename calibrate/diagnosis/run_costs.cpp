// One pass over all ops of all iterations.
//
// SPDX-License-Identifier: MIT
#include "calibrate/diagnosis/run_costs.h"

#include <algorithm>
#include <cmath>

namespace plumbline {
namespace {

Duration median_of(const std::vector<double>& seconds) {
  return seconds.empty() ? Duration{} : Duration{std::llround(statistics_of(seconds).median * 1e9)};
}

std::optional<Duration> median_if_any(const std::vector<double>& seconds) {
  if (seconds.empty()) return std::nullopt;
  return median_of(seconds);
}

std::optional<Duration> mean_if_any(const std::vector<double>& seconds) {
  if (seconds.empty()) return std::nullopt;
  return Duration{std::llround(statistics_of(seconds).mean * 1e9)};
}

/// What is gathered of one link before it is summed up.
struct LinkSamples {
  std::size_t transfers = 0;
  std::vector<double> latency, moving, waiting, bytes;
};

/// Gathers samples over the iterations of a run.
class CostReader {
 public:
  explicit CostReader(const RecordedRun& run) : run_(run), updates_(run.devices.size()) {}

  RunCosts read() {
    for (const RunIteration& iteration : run_.iterations) read(iteration);
    RunCosts costs;
    for (auto& [key, samples] : ops_) {
      OpCosts& of = samples.costs;
      of.time = median_of(samples.means);
      of.seconds = statistics_of(samples.all);
      of.busy_share = samples.length > 0 ? samples.busy / samples.length : 1;
      for (const auto& [micro_batch, lengths] : samples.by_micro_batch) {
        const Duration median = median_of(lengths);
        if (of.most.count() == 0 || median > of.most) {
          of.most = median;
          of.most_of = micro_batch;
        }
        if (of.least.count() == 0 || median < of.least) {
          of.least = median;
          of.least_of = micro_batch;
        }
      }
      costs.ops[key] = of;
    }
    for (const auto& [pair, samples] : links_) {
      LinkCosts link{pair.first,
                     pair.second,
                     samples.transfers,
                     mean_if_any(samples.latency),
                     median_if_any(samples.moving),
                     median_if_any(samples.waiting),
                     {},
                     samples.latency.size()};
      if (!samples.bytes.empty()) link.bytes = {std::llround(statistics_of(samples.bytes).median)};
      costs.links.push_back(link);
    }
    for (const auto& samples : updates_) costs.updates.push_back(median_of(samples));
    costs.between_ops = mean_if_any(between_ops_).value_or(Duration{});
    costs.between_iterations = median_of(between_iterations_);
    std::vector<double> times;
    for (const std::size_t k : run_.timed()) times.push_back(seconds(run_.iterations[k].time()));
    costs.iteration_s = statistics_of(std::move(times));
    return costs;
  }

 private:
  struct OpSamples {
    OpCosts costs;
    std::vector<double> all, means;
    std::map<std::uint32_t, std::vector<double>> by_micro_batch;
    double busy = 0, length = 0;
    double slowest = -1;
  };

  void read(const RunIteration& iteration) {
    std::map<std::pair<std::uint32_t, OpKind>, std::pair<double, std::size_t>> sums;
    const OpInputs inputs(run_, iteration);
    for (std::size_t d = 0; d < iteration.ops.size(); ++d) {
      const RunOp* before = nullptr;
      for (const RunOp& op : iteration.ops[d]) {
        const std::pair key(op.op.stage.value, op.op.kind);
        const double length = seconds(op.work.length());
        sums[key].first += length;
        ++sums[key].second;
        OpSamples& of = ops_[key];
        of.all.push_back(length);
        of.by_micro_batch[op.op.micro_batch.value].push_back(length);
        of.busy += seconds(op.busy);
        of.length += length;
        if (length > of.slowest) {
          of.slowest = length;
          of.costs.slowest = op.op;
          of.costs.slowest_in = iteration.number;
        }
        read_input(op, before, inputs.of(op), iteration);
        before = &op;
      }
      if (const auto& update = iteration.updates[d])
        updates_[d].push_back(
            seconds(update->end - iteration.ops[d].back().work.end -
                    waited_for(run_.sends[d], iteration.ops[d].back().work.end, update->begin)));
    }
    for (const auto& [key, sum] : sums)
      ops_[key].means.push_back(sum.first / static_cast<double>(sum.second));
    if (iteration.period)
      between_iterations_.push_back(seconds(*iteration.period - longest_part(iteration)));
  }

  /// The gap between two ops of a device, without collectives and waits for sends.
  void add_gap(const RunOp& before, const RunOp& op) {
    const std::uint32_t d = run_.device_of(op.op.stage.value);
    const SimTime from = before.work.end, to = op.work.begin;
    Duration gap = to - from - covered(run_.collectives[d], from, to);
    gap -= std::min(std::max(gap, Duration{}), waited_for(run_.sends[d], from, to));
    between_ops_.push_back(seconds(std::max(gap, Duration{})));
  }

  void read_input(const RunOp& op, const RunOp* before, const OpInput& input,
                  const RunIteration& iteration) {
    if (!input.producer) {
      if (before && !op.in_pair) add_gap(*before, op);
      return;
    }
    const SimTime made = input.producer->work.end;
    const bool waited = !before || before->work.end < made;
    // What was made well before this device was free cannot be what it waited for.
    if (before && !op.in_pair && made < before->work.end - before->work.length() / 2)
      add_gap(*before, op);
    LinkSamples& link =
        links_[{run_.device_of(input.producer->op.stage.value), run_.device_of(op.op.stage.value)}];
    ++link.transfers;
    if (waited)
      link.latency.push_back(
          seconds(std::max(Duration{}, input.arrival.value_or(op.work.begin) - made)));
    const auto found = iteration.transfers.find(op.op);
    if (found == iteration.transfers.end()) return;
    const RunTransfer& transfer = found->second;
    if (transfer.bytes.count > 0) link.bytes.push_back(static_cast<double>(transfer.bytes.count));
    if (const auto from = transfer.moved_from(); from && run_.clock == OpClock::kernels) {
      link.moving.push_back(seconds(*transfer.arrival() - *from));
      link.waiting.push_back(seconds(*from - transfer.received->begin));
    }
  }

  /// The longest part that a device has in an iteration: from its first op to its last op or
  /// update.
  Duration longest_part(const RunIteration& iteration) const {
    Duration longest{};
    for (std::size_t d = 0; d < iteration.ops.size(); ++d) {
      SimTime end = iteration.ops[d].back().work.end;
      if (iteration.updates[d]) end = std::max(end, iteration.updates[d]->end);
      longest = std::max(longest, end - iteration.ops[d].front().work.begin);
    }
    return longest;
  }

  const RecordedRun& run_;
  std::map<std::pair<std::uint32_t, OpKind>, OpSamples> ops_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, LinkSamples> links_;
  std::vector<std::vector<double>> updates_;
  std::vector<double> between_ops_, between_iterations_;
};

}  // namespace

OpInputs::OpInputs(const RecordedRun& run, const RunIteration& iteration)
    : run_(run), iteration_(iteration) {
  for (const auto& device : iteration.ops) {
    for (const RunOp& op : device) ops_[op.op] = &op;
  }
}

OpInput OpInputs::of(const RunOp& op) const {
  OpInput input;
  for (const bool split : {false, true}) {
    if (split && op.op.kind == OpKind::forward) break;
    const auto needs = producer_of(op.op, run_.stages, split);
    const auto found = needs ? ops_.find(*needs) : ops_.end();
    if (found == ops_.end()) continue;
    if (run_.device_of(needs->stage.value) != run_.device_of(op.op.stage.value))
      input.producer = found->second;
  }
  if (!input.producer) return input;
  const auto transfer = iteration_.transfers.find(op.op);
  if (transfer == iteration_.transfers.end()) return input;
  if (const auto arrival = transfer->second.arrival()) {
    const SimTime made = input.producer->work.end;
    const RecordedSpan& received = *transfer->second.received;
    // A receive that ended before the data was made had only been posted. One on a CPU that was
    // posted long after, and ended at once, tells that the data had been there, not since when.
    const bool was_there = run_.clock != OpClock::kernels && transfer->second.is_whole &&
                           received.begin - made > 4 * received.length();
    if (*arrival >= made && !was_there)
      input.arrival = std::min(*arrival, std::max(op.work.begin, made));
  }
  return input;
}

const OpCosts* RunCosts::find(std::uint32_t stage, OpKind kind) const {
  const auto found = ops.find({stage, kind});
  return found == ops.end() ? nullptr : &found->second;
}

std::optional<Duration> RunCosts::latency() const {
  double sum = 0;
  std::size_t waits = 0;
  for (const LinkCosts& link : links) {
    sum += static_cast<double>(link.waits) * seconds(link.latency.value_or(Duration{}));
    waits += link.waits;
  }
  if (waits == 0) return std::nullopt;
  return Duration{std::llround(sum / static_cast<double>(waits) * 1e9)};
}

RunCosts costs_of(const RecordedRun& run) { return CostReader(run).read(); }

}  // namespace plumbline
