// Resolve, then predict.
//
// SPDX-License-Identifier: MIT
#include "sim/planning/predict.h"

namespace plumbline {

Result<Outcome> predict(const Scenario& scenario, Evaluation evaluation, const Partition* as) {
  auto setup = resolve(scenario, as);
  if (!setup) return setup.problems();
  auto outcome = predict(*std::move(setup), evaluation);
  if (!outcome) return located(outcome.problems(), scenario.schedule.micro_batches_mark);
  return outcome;
}

}  // namespace plumbline
