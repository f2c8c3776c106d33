// Sensitivities are evaluated side by side. Newton's method on a convex function finds where their
// gain ends.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/sensitivity.h"

#include <algorithm>
#include <map>

#include "sim/engine/critical.h"
#include "sim/whatif/lever_evaluator.h"
#include "sim/whatif/lever_trials.h"
#include "sim/whatif/levers.h"

namespace plumbline {
namespace {

/// The x up to which an end is on its line T(x) = T(0) - slope x, for each lever; then another path
/// takes over. Newton's method goes from x = 1 towards 0: the next x is where the line through the
/// current point meets that line. `near` holds the ends at x = 0; `end` chooses one of each pair.
std::vector<double> line_ends(LeverEvaluator& evaluator, const std::vector<Lever*>& followed,
                              const std::vector<TimedEnds>& near, TimedEnd TimedEnds::*end) {
  constexpr int max_rounds = 40;
  std::vector<const Lever*> levers(followed.begin(), followed.end());
  std::vector<double> x(followed.size(), 1);
  std::vector<bool> found(followed.size(), false);
  for (int round = 0; round < max_rounds; ++round) {
    const std::vector<TimedEnds> ends = evaluator.at(levers, x, DualSide::longer);
    for (std::size_t i = 0; i < followed.size(); ++i) {
      if (found[i]) continue;
      const TimedEnd& start = near[i].*end;
      const TimedEnd& point = ends[i].*end;
      const double above = point.length - (start.length - start.slope * x[i]);
      // Times are whole nanoseconds. Half of one for each of the ops in a row is no difference.
      // Neither is the part that the slope has missed.
      const double ops = start.slope / static_cast<double>(followed[i]->sensitivity.now.count());
      const double rounding = ops * (0.5 + evaluator.missed_by_steps(*followed[i])) + 1;
      const double steeper = start.slope - point.slope;
      found[i] = above <= rounding;
      if (!found[i]) x[i] = steeper > 0 ? std::clamp(x[i] - above / steeper, 0.0, x[i]) : 0;
    }
    if (std::all_of(found.begin(), found.end(), [](bool f) { return f; })) break;
  }
  return x;
}

/// Sets how far each gain holds: as far as both timed ends are on their lines.
void follow(LeverEvaluator& evaluator, const IterationClock& clock,
            const std::vector<Lever*>& followed, const std::vector<TimedEnds>& near) {
  const std::vector<const Lever*> levers(followed.begin(), followed.end());
  const std::vector<double> all(followed.size(), 1);
  const std::vector<TimedEnds> far = evaluator.at(levers, all, DualSide::longer);
  std::vector<double> until = line_ends(evaluator, followed, near, &TimedEnds::last);
  if (!clock.watched().empty()) {
    const std::vector<double> first = line_ends(evaluator, followed, near, &TimedEnds::first);
    for (std::size_t i = 0; i < until.size(); ++i) until[i] = std::min(until[i], first[i]);
  }
  for (std::size_t i = 0; i < followed.size(); ++i) {
    followed[i]->sensitivity.min_s = clock.iteration_time_s(far[i].between().length);
    followed[i]->sensitivity.until = until[i];
  }
}

void evaluate_exactly(const Outcome& outcome, const CostIndex& index, std::vector<Lever*>& levers) {
  const IterationClock clock(outcome);
  // The steady state of an asynchronous run has two ends, so all of its graph matters.
  const bool steady = !clock.watched().empty();
  const IndexedGraph part =
      steady ? IndexedGraph{outcome.graph, index} : critical_part(outcome, index);
  LeverEvaluator near(part.graph, part.index, clock);
  std::map<const Lever*, TimedEnds> near_ends;
  for (std::size_t first = 0; first < levers.size(); first += CompiledGraph::kLanes) {
    const std::size_t count = std::min(CompiledGraph::kLanes, levers.size() - first);
    const std::vector<const Lever*> some(
        levers.begin() + static_cast<std::ptrdiff_t>(first),
        levers.begin() + static_cast<std::ptrdiff_t>(first + count));
    const std::vector<TimedEnds> ends =
        near.at(some, std::vector<double>(count, 0), DualSide::shorter);
    for (std::size_t i = 0; i < count; ++i) {
      near_ends[some[i]] = ends[i];
      settle(levers[first + i]->sensitivity, ends[i].between().slope, clock);
    }
  }
  sort_by_gain(levers);
  std::vector<Lever*> followed;
  std::vector<TimedEnds> their_ends;
  for (const bool every : {true, false}) {
    for (Lever* lever : levers) {
      if (followed.size() == kSensitivitiesFollowed || lever->sensitivity.gain_s <= 0) break;
      if (lever->sensitivity.every != every) continue;
      followed.push_back(lever);
      their_ends.push_back(near_ends[lever]);
    }
  }
  if (followed.empty()) return;
  LeverEvaluator far(outcome.graph, index, clock);
  follow(far, clock, followed, their_ends);
}

/// Where rates change during the run, a small step may make transfers meet, or part them. This can
/// change more than the step itself is worth. Without a flush a step moves both ends of a span. So
/// all levers are tried with one step, and those that
/// save the most with several.
void evaluate_by_events(const Outcome& outcome, const CostIndex& index,
                        std::vector<Lever*>& levers) {
  try_each(outcome, index, levers, {0.05});
  sort_by_gain(levers);
  std::vector<Lever*> first;
  for (Lever* lever : levers) {
    if (lever->sensitivity.every || first.size() < kSensitivitiesFollowed) first.push_back(lever);
  }
  try_each(outcome, index, first, {0.02, 0.04, 0.06, 0.08, 0.1});
}

}  // namespace

Sensitivities sensitivities(const Outcome& outcome) {
  Levers levers(outcome);
  std::vector<Lever>& all = levers.all();
  // A lever that is not on a longest path gains nothing. There are two exceptions. An asynchronous
  // run, and one without a flush, is timed between two ends, each with its own path. And an op off
  // the path may slow down one on it.
  const bool two_ends = outcome.graph.asynchronous() || !outcome.graph.flushes;
  std::vector<bool> matters(all.size(), two_ends || outcome.graph.has_slowdowns());
  for (const std::uint32_t node : critical_path(outcome.trace)) {
    for (const std::size_t lever : levers.of(node)) matters[lever] = true;
  }
  std::vector<Lever*> asked;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (matters[i] && !all[i].parts.empty()) asked.push_back(&all[i]);
  }
  Sensitivities result;
  // Without a flush the time is the longest of several spans, which is no convex function.
  result.exact = !outcome.graph.rates_change() && outcome.graph.flushes;
  if (result.exact) {
    evaluate_exactly(outcome, levers.index(), asked);
  } else {
    evaluate_by_events(outcome, levers.index(), asked);
  }
  result.all.reserve(all.size());
  for (const Lever& lever : all) {
    if (!lever.parts.empty()) result.all.push_back(lever.sensitivity);
  }
  std::stable_sort(result.all.begin(), result.all.end(),
                   [](const Sensitivity& a, const Sensitivity& b) { return a.gain_s > b.gain_s; });
  return result;
}

}  // namespace plumbline
