// A scenario's text, planned, lowered and ready for a real run.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "calibrate/runtime/run_plan.h"
#include "sim/planning/predict.h"

namespace plumbline::test {

/// All objects that a run needs, in one place that does not move.
struct Subject {
  Scenario scenario;
  TrainingSetup setup;
  OpGraph graph;

  /// `for_run` as for resolve_setup.
  Subject(Result<Scenario> read, bool for_run) {
    REQUIRE_MESSAGE(read, (read ? "" : to_text(read.problems())));
    scenario = *std::move(read);
    auto resolved = resolve_setup(scenario, for_run);
    REQUIRE_MESSAGE(resolved, (resolved ? "" : to_text(resolved.problems())));
    setup = *std::move(resolved);
    auto lowered = lower(setup);
    REQUIRE_MESSAGE(lowered, (lowered ? "" : to_text(lowered.problems())));
    graph = *std::move(lowered);
  }

  RunPlan plan() const { return {graph, setup}; }
};

}  // namespace plumbline::test
