// Scenarios over a profile that a test writes.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "sim/planning/predict.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_source.h"

namespace plumbline::test {

/// A profile in a file of its own, and what scenarios over it predict.
class ProfileFile {
 public:
  explicit ProfileFile(const std::string& text) : path_(folder_.file("slow.profile.yaml", text)) {}

  Outcome predict(const std::string& rest) const {
    const auto scenario = parse_scenario(
        text_source("slow.yaml", "version: 1\nmodel: {profile: " + path_ + "}\n" + rest), {});
    REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
    auto outcome = plumbline::predict(*scenario);
    REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
    return *std::move(outcome);
  }

 private:
  TemporaryFolder folder_;
  std::string path_;
};

}  // namespace plumbline::test
