// Comparison side by side: scenarios with several values, and those of them that cannot run.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/compared_runs.h"

#include <doctest/doctest.h>

#include "tests/support/temporary_folder.h"

namespace plumbline::test {
namespace {

constexpr const char* kScenario =
    "version: 1\n"
    "model: {uniform: {layers: 4, forward: 1 ms, backward: 2 ms, output: 1 MiB, activation: 4 MiB, "
    "parameters: 8 MiB}, batch: 8}\n"
    "cluster: {devices: 4}\nschedule: {name: gpipe, micro_batches: 4}\n";

TEST_CASE("every scenario is predicted under every combination, and named by what varies") {
  const TemporaryFolder folder;
  const std::string first = folder.file("first.yaml", kScenario);
  const std::string second = folder.file("second.yaml", kScenario);
  const auto read =
      compared_runs({first, second}, {{"schedule.name=gpipe", "schedule.micro_batches=4"},
                                      {"schedule.name=gpipe", "schedule.micro_batches=8"}});
  REQUIRE_MESSAGE(read, (read ? "" : to_text(read.problems())));
  REQUIRE(read->runs.size() == 4);
  CHECK(read->runs[0].title == "first micro_batches=4");
  CHECK(read->runs[3].title == "second micro_batches=8");
  CHECK(read->runs[3].micro_batches == 8);
  REQUIRE(read->origins.size() == 4);
  CHECK(read->origins[3].path == second);
  CHECK(read->origins[3].overrides.back() == "schedule.micro_batches=8");
  CHECK(read->refused.empty());
  const auto schedules = compared_runs({first}, {{"schedule.name=gpipe"}, {"schedule.name=1f1b"}});
  REQUIRE(schedules);
  CHECK(schedules->runs[1].title == "1f1b");
}

TEST_CASE("a wrong input is an error, and so is a result that is not there") {
  const TemporaryFolder folder;
  const std::string file = folder.file("first.yaml", kScenario);
  const auto wrong = compared_runs({file}, {{"schedule.name=gpipe"}, {"schedule.name=gpip"}});
  REQUIRE_FALSE(wrong);
  CHECK(wrong.problems().front().fault == Fault::input);
  CHECK(is_result("run.json"));
  CHECK_FALSE(is_result(file));
  const auto missing = compared_runs({file, folder["run.json"]}, {{}});
  REQUIRE_FALSE(missing);
  CHECK(missing.problems().front().fault == Fault::file);
}

TEST_CASE("what cannot run is left out, as long as two are left") {
  const TemporaryFolder folder;
  const std::string file = folder.file("first.yaml", kScenario);
  folder.file("orders.csv", "0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n");  // each waits for the other
  const std::string stuck =
      folder.file("stuck.yaml",
                  "version: 1\nmodel: {uniform: {layers: 2, forward: 1 ms, backward: 2 ms}}\n"
                  "cluster: {devices: 2}\nschedule: {file: orders.csv, micro_batches: 2}\n");
  const auto read = compared_runs({file, stuck, file}, {{}});
  REQUIRE_MESSAGE(read, (read ? "" : to_text(read.problems())));
  CHECK(read->runs.size() == 2);
  REQUIRE(read->refused.size() == 1);
  CHECK(read->refused.front().title == "stuck");
  CHECK(read->why_refused.front().fault == Fault::infeasible);
  const auto too_few = compared_runs({file, stuck}, {{}});
  REQUIRE_FALSE(too_few);
  CHECK(too_few.problems().front().fault == Fault::infeasible);
}

}  // namespace
}  // namespace plumbline::test
