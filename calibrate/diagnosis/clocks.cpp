// Bounds between pairs of ranks, then a tree of the narrowest of them.
//
// SPDX-License-Identifier: MIT
#include "calibrate/diagnosis/clocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "base/quantity.h"

namespace plumbline {
namespace {

/// In nanoseconds.
constexpr double kUnbounded = std::numeric_limits<double>::infinity();

/// Between which numbers the difference of two clocks lies, in one iteration.
struct Bounds {
  double low = -kUnbounded;
  double high = kUnbounded;

  bool is_empty() const { return low > high; }
  bool both() const { return std::isfinite(low) && std::isfinite(high); }
  double middle() const { return both() ? (low + high) / 2 : std::isfinite(low) ? low : high; }
  double half() const { return both() ? std::abs(high - low) / 2 : kUnbounded; }
  void meet(const Bounds& other) {
    low = std::max(low, other.low);
    high = std::min(high, other.high);
  }
};

/// The difference of two clocks in every iteration.
struct Difference {
  std::vector<double> by_iteration;
  double half = kUnbounded;
  std::string note;
  bool is_impossible = false;  ///< No two clocks differ so much in their speed.
};

using Pair = std::pair<std::size_t, std::size_t>;  // two recordings, the lower first

double nanoseconds(Duration time) { return static_cast<double>(time.count()); }

/// Reads the bounds of all pairs of ranks out of a run.
class BoundsReader {
 public:
  explicit BoundsReader(const RecordedRun& run) : run_(run) {}

  /// The bounds by iteration, for each pair of ranks that send each other something. Where both
  /// ends of transfers were recorded in both directions, they are narrower than the ops.
  std::map<Pair, std::vector<Bounds>> read() {
    for (std::size_t k = 0; k < run_.iterations.size(); ++k) read(k);
    for (auto& [pair, bounds] : by_ops_) {
      const auto narrow = by_transfers_.find(pair);
      if (narrow == by_transfers_.end()) continue;
      for (std::size_t k = 0; k < bounds.size(); ++k) {
        if (narrow->second[k].both()) bounds[k] = narrow->second[k];
      }
    }
    return std::move(by_ops_);
  }

 private:
  void read(std::size_t k) {
    const RunIteration& iteration = run_.iterations[k];
    std::map<Op, const RunOp*> ops;
    bool split = false;
    for (const auto& of_device : iteration.ops) {
      for (const RunOp& op : of_device) {
        ops[op.op] = &op;
        split = split || op.op.kind == OpKind::backward_input;
      }
    }
    for (const auto& [op, consumer] : ops) {
      const auto needs = producer_of(op, run_.stages, split);
      if (!needs) continue;
      const auto producer = ops.find(*needs);
      if (producer == ops.end()) continue;
      const std::size_t from = recording(needs->stage);
      const std::size_t to = recording(op.stage);
      if (from == to) continue;
      bound(by_ops_, k, from, to, nanoseconds(consumer->work.begin - producer->second->work.end));
      const auto transfer = iteration.transfers.find(op);
      if (transfer == iteration.transfers.end()) continue;
      const auto& [sent, received, bytes, is_whole] = transfer->second;
      if (received && is_whole)
        bound(by_ops_, k, from, to, nanoseconds(received->end - producer->second->work.end));
      if (!sent || !received) continue;
      const SimTime since = run_.clock == OpClock::kernels ? sent->end : sent->begin;
      bound(by_transfers_, k, from, to, nanoseconds(received->end - since));
    }
  }

  std::size_t recording(StageId stage) const {
    return run_.devices[run_.device_of(stage.value)].recording;
  }

  /// `least` is a time from `from` to `to`, as their clocks show it; in truth it is not negative.
  void bound(std::map<Pair, std::vector<Bounds>>& all, std::size_t k, std::size_t from,
             std::size_t to, double least) const {
    auto& bounds = all[std::minmax(from, to)];
    bounds.resize(run_.iterations.size());
    if (from < to)
      bounds[k].high = std::min(bounds[k].high, least);
    else
      bounds[k].low = std::max(bounds[k].low, -least);
  }

  const RecordedRun& run_;
  std::map<Pair, std::vector<Bounds>> by_ops_, by_transfers_;
};

/// A line through points by least squares.
struct Line {
  double at_zero = 0, slope = 0;

  double at(double x) const { return at_zero + slope * x; }
};

Line line_through(const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = static_cast<double>(x.size());
  double mean_x = 0, mean_y = 0, xx = 0, xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    mean_x += x[i] / n;
    mean_y += y[i] / n;
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  const double slope = xx > 0 ? xy / xx : 0;
  return {mean_y - slope * mean_x, slope};
}

/// Decides on the difference of two clocks. `begins` are those of the iterations, on the first
/// clock. Its own note begins with a verb: "runs 3.0 ppm faster".
Difference decide(const std::vector<Bounds>& bounds, const std::vector<double>& begins,
                  const std::vector<RunIteration>& iterations) {
  Difference difference;
  Bounds all;
  for (const Bounds& one : bounds) all.meet(one);
  if (!all.is_empty()) {
    difference.by_iteration.assign(bounds.size(), all.middle());
    difference.half = all.half();
    return difference;
  }
  std::vector<double> middles;
  for (const Bounds& one : bounds) {
    middles.push_back(one.middle());
    difference.half = std::min(difference.half, one.half());
  }
  const Line line = line_through(begins, middles);
  bool is_line = bounds.size() > 2;
  for (std::size_t k = 0; k < bounds.size(); ++k) {
    difference.by_iteration.push_back(line.at(begins[k]));
    is_line = is_line && std::abs(line.at(begins[k]) - middles[k]) <= bounds[k].half();
  }
  if (is_line) {
    constexpr double most_drift = 1e-2;  // clocks of computers are within some 100 ppm
    difference.is_impossible = std::abs(line.slope) > most_drift;
    difference.note = fmt::format("runs {:.1f} ppm {}", std::abs(line.slope) * 1e6,
                                  line.slope > 0 ? "faster" : "slower");
    return difference;
  }
  difference.by_iteration = middles;
  if (bounds.size() == 1) return difference;
  std::size_t jump = 1;  // where the difference changes most
  for (std::size_t k = 1; k < middles.size(); ++k) {
    if (std::abs(middles[k] - middles[k - 1]) > std::abs(middles[jump] - middles[jump - 1]))
      jump = k;
  }
  // Less than that is the noise of transfers.
  constexpr double least_jump = 1e5;
  if (std::abs(middles[jump] - middles[jump - 1]) < least_jump) return difference;
  difference.note = fmt::format("jumps by {} before iteration {}",
                                time_text(std::abs(middles[jump] - middles[jump - 1]) / 1e9),
                                iterations[jump].number);
  return difference;
}

void move(RecordedSpan& span, Duration by) {
  span.begin -= by;
  span.end -= by;
}

/// Takes the differences off the times of one iteration.
void correct(RunIteration& iteration, const std::vector<Duration>& ahead, const RecordedRun& run) {
  for (std::size_t d = 0; d < iteration.ops.size(); ++d) {
    for (RunOp& op : iteration.ops[d]) move(op.work, ahead[d]);
    if (iteration.updates[d]) move(*iteration.updates[d], ahead[d]);
  }
  for (auto& [op, transfer] : iteration.transfers) {
    const auto needs = producer_of(op, run.stages, false);
    if (transfer.sent && needs) move(*transfer.sent, ahead[run.device_of(needs->stage.value)]);
    if (transfer.received) move(*transfer.received, ahead[run.device_of(op.stage.value)]);
  }
}

/// Takes the differences off the times of spans of each device: each has that of the last iteration
/// whose ops began before on its device. Requires: the iterations' own times are not corrected yet.
void correct_spans(const RecordedRun& run, const std::vector<std::vector<Duration>>& ahead,
                   std::vector<std::vector<RecordedSpan>>& spans) {
  for (std::size_t d = 0; d < run.devices.size(); ++d) {
    std::size_t k = 0;
    for (RecordedSpan& span : spans[d]) {
      while (k + 1 < run.iterations.size() &&
             run.iterations[k + 1].ops[d].front().work.begin <= span.begin)
        ++k;
      move(span, ahead[k][d]);
    }
  }
}

}  // namespace

std::optional<Diagnostic> align_clocks(RecordedRun& run,
                                       const std::vector<RankRecording>& recordings) {
  auto bounds = BoundsReader(run).read();
  const std::size_t iterations = run.iterations.size();
  std::vector<double> begins;
  for (const RunIteration& iteration : run.iterations)
    begins.push_back(nanoseconds(iteration.ops.front().front().work.begin -
                                 run.iterations.front().ops.front().front().work.begin));
  // A tree of the narrowest bounds, from the rank of device 0.
  std::map<std::size_t, Difference> known;
  known[run.devices.front().recording] = {std::vector<double>(iterations, 0), 0, ""};
  std::map<Pair, Difference> differences;
  for (const auto& [pair, of] : bounds) differences[pair] = decide(of, begins, run.iterations);
  for (;;) {
    const Pair* best = nullptr;
    for (const auto& [pair, difference] : differences) {
      if (known.count(pair.first) == known.count(pair.second)) continue;
      if (!best || difference.half < differences[*best].half) best = &pair;
    }
    if (!best) break;
    const bool upwards = known.count(best->first) > 0;
    const Difference& of = differences[*best];
    if (of.is_impossible) {
      auto source = std::make_shared<Source>();
      source->name = recordings[best->second].file;
      return input_error({std::move(source)},
                         fmt::format("its times do not go with those of {}, whatever their clocks",
                                     recordings[best->first].file),
                         "are these ranks of one run, in the same steps?");
    }
    const std::size_t from = upwards ? best->first : best->second;
    const std::size_t to = upwards ? best->second : best->first;
    Difference next{known[from].by_iteration, known[from].half + of.half, of.note};
    for (std::size_t k = 0; k < iterations; ++k)
      next.by_iteration[k] += (upwards ? 1 : -1) * of.by_iteration[k];
    if (!of.note.empty())
      run.notes.push_back(fmt::format("the clock of {} {}, seen from {}",
                                      recordings[upwards ? to : from].file, of.note,
                                      recordings[upwards ? from : to].file));
    known[to] = std::move(next);
  }
  std::vector<std::vector<Duration>> ahead(iterations);  // by iteration and device
  for (std::size_t k = 0; k < iterations; ++k) {
    for (const RunDevice& device : run.devices) {
      const auto of = known.find(device.recording);
      const double ns = of == known.end() ? 0 : of->second.by_iteration[k];
      ahead[k].push_back(Duration{std::llround(ns)});
    }
  }
  correct_spans(run, ahead, run.collectives);
  correct_spans(run, ahead, run.sends);
  for (std::size_t k = 0; k < iterations; ++k) correct(run.iterations[k], ahead[k], run);
  for (RunDevice& device : run.devices) {
    const auto of = known.find(device.recording);
    if (of == known.end() || device.recording == run.devices.front().recording) continue;
    device.clock_ahead = Duration{std::llround(of->second.by_iteration.front())};
    if (std::isfinite(of->second.half))
      device.clock_known_to = Duration{std::llround(of->second.half)};
  }
  return std::nullopt;
}

}  // namespace plumbline
