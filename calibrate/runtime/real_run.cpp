// The passes from a scenario to measured iterations.
//
// SPDX-License-Identifier: MIT
#include "calibrate/runtime/real_run.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "calibrate/runtime/provenance_check.h"
#include "calibrate/runtime/refused_training.h"
#include "sim/engine/idle.h"
#include "sim/setup/resolve_setup.h"

namespace plumbline {
namespace {

Diagnostic given_up(const OpGraph& graph, const RunFailure& failure) {
  Diagnostic problem = input_error({}, failure.message);
  problem.detail = to_text(graph, failure.stands);
  problem.fault = Fault::infeasible;
  return problem;
}

/// The iteration with the median time among those that count.
std::size_t median_of(const std::vector<double>& times, const std::vector<std::size_t>& counted) {
  std::vector<std::size_t> order = counted;
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return times[a] < times[b]; });
  return order[(order.size() - 1) / 2];
}

/// The setup and the graph that devices execute.
struct Executed {
  TrainingSetup setup;
  OpGraph graph;
};

/// Adds the time of each iteration. Returns the iterations that count: the clean ones, or all if
/// none was clean.
std::vector<std::size_t> add_times(const Executed& executed, RealRun& real) {
  std::vector<std::size_t> counted;
  for (std::size_t i = 0; i < real.iterations.size(); ++i) {
    if (real.iterations[i].clean) counted.push_back(i);
  }
  real.clean = counted.size();
  if (counted.empty()) {
    counted.resize(real.iterations.size());
    std::iota(counted.begin(), counted.end(), std::size_t{0});
  }
  for (const MeasuredIteration& iteration : real.iterations) {
    const Metrics metrics = measure(executed.graph, iteration.trace, executed.setup.steady_window);
    const double traced = executed.setup.iteration_time_of(metrics);
    const double untraced = iteration.untraced && metrics.makespan.count() > 0
                                ? seconds(*iteration.untraced) / seconds(metrics.makespan)
                                : 1;
    real.times_s.push_back(traced * untraced);
  }
  std::vector<double> counted_times;
  counted_times.reserve(counted.size());
  for (const std::size_t i : counted) counted_times.push_back(real.times_s[i]);
  real.time_s = statistics_of(std::move(counted_times));
  return counted;
}

/// Adds the outcome of the shown iteration, which represents all.
std::optional<Diagnostics> add_outcome(Executed executed, RealRun& real) {
  const MeasuredIteration& shown = real.iterations[real.shown];
  executed.setup.forget_errors();
  auto outcome = assess(std::move(executed.setup), std::move(executed.graph), shown.trace);
  if (!outcome) return outcome.problems();
  real.outcome = *std::move(outcome);
  real.outcome.bubble_terms = bubble_terms(real.outcome, /*measured=*/true);
  real.outcome.memory = shown.memory;
  if (shown.untraced && real.times_s[real.shown] > 0) {  // the trace gives the shape, not the time
    real.traced_s = real.outcome.iteration_time_s;
    real.outcome.iteration_time_s = real.times_s[real.shown];
    real.outcome.throughput_samples_per_s =
        real.outcome.samples_per_iteration() / real.outcome.iteration_time_s;
  }
  real.rounds_s = {real.outcome.iteration_time_s};
  return std::nullopt;
}

/// Adds the description of the backend and its remarks.
void describe(const Backend& backend, RealRun& real) {
  real.backend = backend.name();
  real.device = backend.device_text();
  real.cores = usable_cores();
  if (auto elsewhere = measured_elsewhere(real.outcome.setup.model->profile, backend.provenance()))
    real.remarks.push_back(*std::move(elsewhere));
  const std::vector<std::string> own = backend.remarks();
  real.remarks.insert(real.remarks.end(), own.begin(), own.end());
}

/// Runs a graph for real. Errors, without a mark: those of run_setup() but for lower()'s.
Result<RealRun> execute(TrainingSetup setup, OpGraph graph, Backend& backend,
                        const RunOptions& options) {
  auto executed = std::make_unique<Executed>(Executed{std::move(setup), std::move(graph)});
  auto result = backend.run(RunPlan{executed->graph, executed->setup},
                            nodes_by_slot(executed->graph), options);
  if (const auto* failure = std::get_if<RunFailure>(&result)) {
    Diagnostic problem = given_up(executed->graph, *failure);
    // A hung thread still reads it.
    if (failure->kind == RunFailure::Kind::hung) static_cast<void>(executed.release());
    return problem;
  }
  RealRun real;
  real.iterations = std::move(std::get<RunRecord>(result).iterations);
  const std::vector<std::size_t> counted = add_times(*executed, real);
  real.shown = median_of(real.times_s, counted);
  if (auto problems = add_outcome(std::move(*executed), real)) return *problems;
  describe(backend, real);
  return real;
}

}  // namespace

double RealRun::hand_over_per_op_s() const {
  const MeasuredIteration& one = iterations[shown];
  return seconds(one.hand_over) / static_cast<double>(std::max<std::int64_t>(one.hand_overs, 1));
}

double RealRun::range_of_rounds() const {
  if (rounds_s.empty() || outcome.iteration_time_s <= 0) return 0;
  const auto [min, max] = std::minmax_element(rounds_s.begin(), rounds_s.end());
  return (*max - *min) / outcome.iteration_time_s;
}

double RealRun::spread_of_rounds() const {
  constexpr std::size_t few = 4;
  return rounds_s.size() < few ? range_of_rounds() / 2
                               : statistics_of(rounds_s).half_width_of_median();
}

Result<RealRun> run_scenario(const Scenario& scenario, Backend& backend,
                             const RunOptions& options) {
  if (auto refused = check_flush(scenario)) return *refused;
  // The same schedule that is simulated, without models of costs that a real run has by itself.
  Scenario bare = scenario;
  if (backend.has_own_overheads()) bare.overheads = {};
  auto setup = resolve_setup(bare);
  if (!setup) return setup.problems();
  if (backend.has_own_overheads()) setup->forget_split();
  auto graph = lower(*setup);
  if (!graph) return located(graph.problems(), scenario.schedule.micro_batches_mark);
  auto run = execute(*std::move(setup), *std::move(graph), backend, options);
  if (!run) return located(run.problems(), scenario.schedule.name_mark);
  return run;
}

Result<RealRun> run_setup(TrainingSetup setup, Backend& backend, const RunOptions& options) {
  auto graph = lower(setup);
  if (!graph) return graph.problems();
  return execute(std::move(setup), *std::move(graph), backend, options);
}

RealRun together(std::vector<RealRun> rounds) {
  const bool any_clean =
      std::any_of(rounds.begin(), rounds.end(), [](const RealRun& run) { return run.clean > 0; });
  std::vector<double> times;
  std::vector<std::size_t> counted;
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    times.push_back(rounds[i].outcome.iteration_time_s);
    if (rounds[i].clean > 0 || !any_clean) counted.push_back(i);
  }
  const std::size_t middle = median_of(times, counted);
  RealRun all;
  std::vector<std::string> others;  // additional remarks of other rounds
  std::vector<double> clean_times;
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    RealRun& one = rounds[i];
    if (i == middle) {
      all.shown = all.iterations.size() + one.shown;
      all.outcome = std::move(one.outcome);
      all.backend = std::move(one.backend);
      all.device = std::move(one.device);
      all.cores = one.cores;
      all.remarks = std::move(one.remarks);
    } else {
      others.insert(others.end(), one.remarks.begin(), one.remarks.end());
    }
    for (std::size_t k = 0; k < one.iterations.size(); ++k) {
      if (one.iterations[k].clean || !any_clean) clean_times.push_back(one.times_s[k]);
    }
    std::move(one.iterations.begin(), one.iterations.end(), std::back_inserter(all.iterations));
    all.times_s.insert(all.times_s.end(), one.times_s.begin(), one.times_s.end());
    all.clean += one.clean;
  }
  for (std::string& remark : others) {
    const bool is_known =
        std::find(all.remarks.begin(), all.remarks.end(), remark) != all.remarks.end();
    if (!is_known && !remark.starts_with("loss ")) all.remarks.push_back(std::move(remark));
  }
  for (const std::size_t i : counted) all.rounds_s.push_back(times[i]);
  all.time_s = statistics_of(std::move(clean_times));
  return all;
}

}  // namespace plumbline
