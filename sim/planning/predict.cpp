// Resolve, then predict.
//
// SPDX-License-Identifier: MIT
#include "sim/planning/predict.h"

#include <utility>

#include "sim/planning/planning.h"
#include "sim/planning/recomputation_fit.h"

namespace plumbline {

Result<Outcome> predict(const Scenario& scenario, Evaluation evaluation, const Partition* as) {
  auto setup = resolve(scenario, as);
  if (!setup) return setup.problems();
  auto outcome = predict(*std::move(setup), evaluation);
  if (!outcome) return located(outcome.problems(), scenario.schedule.micro_batches_mark);
  return outcome;
}

Result<SettledOutcome> settle_and_predict(Scenario scenario) {
  const bool fits_alone =
      !scenario.plan.is_planned() && !scenario.schedule.is_open() && !scenario.plan.devices_open;
  FittedRecomputation settled;
  if (fits_alone) {
    auto fitted = fit_and_predict(std::move(scenario));
    if (!fitted) return fitted.problems();
    settled = *std::move(fitted);
  } else {
    auto resolved = resolve_plan(std::move(scenario));
    if (!resolved) return resolved.problems();
    settled.scenario = *std::move(resolved);
  }
  if (!settled.outcome) {
    auto outcome = predict_resolved(settled.scenario, Evaluation::fastest);
    if (!outcome) return outcome.problems();
    settled.outcome = *std::move(outcome);
  }
  return SettledOutcome{std::move(settled.scenario), *std::move(settled.outcome)};
}

}  // namespace plumbline
