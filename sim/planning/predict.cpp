// Decide what is open, then predict.
//
// SPDX-License-Identifier: MIT
#include "sim/planning/predict.h"

#include "sim/planning/planning.h"

namespace plumbline {

Result<Outcome> predict(const Scenario& scenario, Evaluation evaluation, const Partition* as) {
  if (is_resolved(scenario)) return predict_resolved(scenario, evaluation, as);
  const auto resolved = resolve_plan(scenario);
  if (!resolved) return resolved.problems();
  return predict_resolved(*resolved, evaluation, as);
}

}  // namespace plumbline
