// Other times for the ops of one graph, evaluated.
//
// SPDX-License-Identifier: MIT
#include "sim/planning/recomputation_trial.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "sim/engine/simulate.h"
#include "sim/graph/lower.h"
#include "sim/graph/op_classes.h"
#include "sim/prediction/predict_resolved.h"
#include "sim/setup/setup_costs.h"

namespace plumbline {

bool RecomputationTrial::Run::fits(const std::vector<Bytes>& memory) const {
  return std::equal(peaks.begin(), peaks.end(), memory.begin(), memory.end(), std::less_equal<>());
}

Result<RecomputationTrial> RecomputationTrial::of(Scenario scenario, const Outcome& none) {
  TrainingSetup setup;  // gets notes and estimates, which the setup of `none` has
  const auto costs = layer_costs(scenario, setup);
  if (!costs) return costs.problems();
  auto layers = on_their_devices(scenario, *costs, none.setup.partition);
  return RecomputationTrial(std::move(scenario), none, std::move(layers));
}

RecomputationTrial::RecomputationTrial(Scenario scenario, const Outcome& none,
                                       std::vector<LayerCosts> layers)
    : scenario_(std::move(scenario)),
      setup_(none.setup),
      graph_(none.graph),
      clock_(none),
      layers_(std::move(layers)) {}

Result<RecomputationTrial::Run> RecomputationTrial::run(
    const std::vector<std::int64_t>& recomputed) {
  // The ops that make a pair, and how long they hold each other up, depend on all times.
  if (!setup_.schedule.partners.empty()) return run_all(recomputed);
  const std::vector<std::uint32_t> numbers(recomputed.begin(), recomputed.end());
  if (auto refused = set_recomputed(scenario_, layers_, numbers, setup_)) return *refused;
  set_op_times(setup_.schedule, setup_.costs, setup_.rules, graph_);
  const Mark& mark = scenario_.schedule.micro_batches_mark;
  if (auto refused = check_overflow(graph_, mark)) return *refused;
  const Trace trace = graph_.rates_change() ? simulate(graph_) : longest_path(graph_);
  if (auto refused = check_device_time(graph_, trace)) return located({*refused}, mark);
  const auto length = static_cast<double>(clock_.length(graph_, trace));
  return Run{clock_.iteration_time_s(length),
             peak_memory(graph_, trace, setup_.costs, setup_.schedule.shape.positions,
                         memory_rules(setup_))};
}

/// The same with the order and the graph made anew.
Result<RecomputationTrial::Run> RecomputationTrial::run_all(
    const std::vector<std::int64_t>& recomputed) {
  scenario_.schedule.recompute.layers = recomputed;
  const auto outcome = predict_resolved(scenario_, Evaluation::fastest);
  if (!outcome) return outcome.problems();
  Run run{outcome->iteration_time_s, {}};
  for (const DeviceMemory& device : outcome->memory) run.peaks.push_back(device.peak.sum());
  return run;
}

}  // namespace plumbline
