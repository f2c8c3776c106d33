// Decides the open settings first, then the rest.
//
// SPDX-License-Identifier: MIT
#include "sim/planning/resolve.h"

#include "sim/planning/planning.h"

namespace plumbline {

Result<TrainingSetup> resolve(const Scenario& scenario, const Partition* as) {
  if (is_resolved(scenario)) return resolve_setup(scenario, /*for_run=*/true, as);
  const auto resolved = resolve_plan(scenario);
  if (!resolved) return resolved.problems();
  return resolve_setup(*resolved, /*for_run=*/true, as);
}

}  // namespace plumbline
