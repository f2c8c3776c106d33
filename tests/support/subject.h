// A scenario's text, planned, lowered and ready to be really run.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "calibrate/runtime/run_plan.h"
#include "sim/planning/predict.h"

namespace plumbline::test {

/// All that a run needs, in one place that does not move.
struct Subject {
  Scenario scenario;
  Pipeline pipeline;
  OpGraph graph;
  MemoryRules rules;

  /// `for_run` as plan_pipeline takes it.
  Subject(Result<Scenario> read, bool for_run) {
    REQUIRE_MESSAGE(read, (read ? "" : to_text(read.problems())));
    scenario = *std::move(read);
    auto planned = plan_pipeline(scenario, for_run);
    REQUIRE_MESSAGE(planned, (planned ? "" : to_text(planned.problems())));
    pipeline = *std::move(planned);
    auto lowered = lower_pipeline(scenario, pipeline);
    REQUIRE_MESSAGE(lowered, (lowered ? "" : to_text(lowered.problems())));
    graph = *std::move(lowered);
    rules = memory_rules(scenario, pipeline);
  }

  RunPlan plan() const { return {graph, pipeline, rules}; }
};

}  // namespace plumbline::test
