// The outcome of a scenario from its text.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "sim/prediction/predict_resolved.h"
#include "tests/support/scenario_of.h"

namespace plumbline::test {

/// Requires: a scenario that leaves nothing open.
inline Outcome outcome_of(const std::string& text) {
  CAPTURE(text);
  auto outcome = predict_resolved(scenario_of(text));
  REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
  return *std::move(outcome);
}

}  // namespace plumbline::test
