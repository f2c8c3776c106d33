// The errors that published runs lead to expect of a scenario's prediction.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "models/kernels/published_errors.h"
#include "sim/scenario/scenario.h"

namespace plumbline {

/// The errors of a scenario's costs (errors_at). Nothing for an asynchronous schedule, which no
/// published run has.
std::optional<PublishedErrors> expected_errors(const Scenario& scenario);

}  // namespace plumbline
