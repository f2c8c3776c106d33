// One question to the profile, and one to the schedule.
//
// SPDX-License-Identifier: MIT
#include "sim/setup/expected_errors.h"

#include "models/profile/estimate.h"

namespace plumbline {

std::optional<PublishedErrors> expected_errors(const Scenario& scenario) {
  if (scenario.schedule.asynchronous()) return std::nullopt;
  return errors_at(scenario.model->profile, scenario.micro_batch_size,
                   scenario.schedule.slices.count);
}

}  // namespace plumbline
