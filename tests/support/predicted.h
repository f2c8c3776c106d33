// The outcome of a scenario from its text, with everything that it leaves open decided.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "sim/planning/predict.h"
#include "tests/support/scenario_of.h"

namespace plumbline::test {

inline Outcome predicted(const std::string& text, Evaluation evaluation = Evaluation::fastest) {
  CAPTURE(text);
  auto outcome = predict(scenario_of(text), evaluation);
  REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
  return *std::move(outcome);
}

}  // namespace plumbline::test
