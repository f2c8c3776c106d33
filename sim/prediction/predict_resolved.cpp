// Resolve, then predict.
//
// SPDX-License-Identifier: MIT
#include "sim/prediction/predict_resolved.h"

namespace plumbline {

Result<Outcome> predict_resolved(const Scenario& scenario, Evaluation evaluation,
                                 const Partition* as) {
  auto setup = resolve_setup(scenario, /*for_run=*/true, as);
  if (!setup) return setup.problems();
  auto outcome = predict(*std::move(setup), evaluation);
  if (!outcome) return located(outcome.problems(), scenario.schedule.micro_batches_mark);
  return outcome;
}

}  // namespace plumbline
