// A scenario from its text.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "sim/scenario/scenario.h"
#include "tests/support/text_source.h"

namespace plumbline::test {

inline Scenario scenario_of(const std::string& text) {
  CAPTURE(text);
  auto scenario = parse_scenario(text_source("scenario.yaml", text), {});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  return *std::move(scenario);
}

}  // namespace plumbline::test
