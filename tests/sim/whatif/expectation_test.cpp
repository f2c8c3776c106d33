// What a run is expected to give.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/expectation.h"

#include <doctest/doctest.h>

#include <string>

#include "sim/planning/predict.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

/// 1F1B on two GPUs, 4 micro-batches: 15 ms, a fifth idle, no memory.
Outcome run_of_two() {
  const auto scenario = parse_scenario(
      text_source("two.yaml",
                  "version: 1\nmodel: {uniform: {layers: 2, forward: 1 ms, backward: 2 ms}}\n"
                  "cluster: {devices: 2}\nschedule: {name: 1f1b, micro_batches: 4}\n"),
      {});
  REQUIRE(scenario);
  return *predict(*scenario);
}

MetExpectation expect_of(const std::string& text) {
  const auto expectation = parse_expectation(text);
  REQUIRE_MESSAGE(expectation, text);
  return meets(*expectation, run_of_two());
}

TEST_CASE("an expectation holds or not, in any unit, with or without the unit in the name") {
  for (const char* text :
       {"makespan=15ms", "makespan_s == 0.015", "makespan <= 15 ms", "makespan>=15000 us",
        "makespan = 15000001 ns", "iteration_time = 15 ms", "bubble_fraction=0.2",
        "bubble_fraction < 0.3", "bubble_overhead = 0.25", "peak_memory_bytes <= 70 GiB",
        "peak_memory < 1 GB", "devices_used = 2", "makespan != 16 ms"}) {
    CAPTURE(text);
    CHECK(expect_of(text).met);
  }
  for (const char* text :
       {"makespan=15.1ms", "makespan < 15 ms", "makespan > 15 ms", "makespan != 15 ms",
        "makespan = 15000002 ns", "bubble_fraction = 0.2001", "goodput > 0", "fits = yes"}) {
    CAPTURE(text);
    CHECK(!expect_of(text).met);
  }
}

TEST_CASE("the sentence names the number, its value and what was expected") {
  CHECK(expect_of("makespan=15ms").said == "makespan = 15 ms");
  CHECK(expect_of("makespan=12 ms").said == "makespan is 15 ms, expected 12 ms");
  CHECK(expect_of("bubble_fraction<0.3").said == "bubble_fraction = 0.2, expected < 0.3");
  CHECK(expect_of("bubble_fraction < 0.1").said == "bubble_fraction is 0.2, expected < 0.1");
  CHECK(expect_of("goodput > 0.9").said == "this run has no goodput, expected > 0.9");
}

TEST_CASE("what cannot be read is an error that lists the names") {
  const auto message = [](const char* text) {
    const auto expectation = parse_expectation(text);
    REQUIRE(!expectation);
    return expectation.problems().front().message;
  };
  CHECK(message("makespan") == "'makespan' compares nothing");
  CHECK(message("makespan => 15 ms") == "'=>' is no comparison");
  CHECK(message("makespam = 15 ms") == "'makespam' is no number of a run");
  CHECK(message("makespan = 15 GiB").starts_with("makespan is compared with '15 GiB', which "));
  CHECK(message("makespan =").starts_with("makespan is compared with '', which "));
  const std::string help = parse_expectation("x = 1").problems().front().help;
  CHECK(help.find("one of makespan_s, iteration_time_s, ") != help.npos);
}

}  // namespace
}  // namespace plumbline::test
