// Sweeps as a whole: what comes out depends on neither threads nor interruptions.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/run_sweep.h"

#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>

#include "tests/support/temporary_folder.h"
#include "tests/support/text_source.h"
#include "tests/support/work_options.h"

namespace plumbline::test {
namespace {

/// Six points, one of which does not fit.
Sweep small_sweep() {
  auto sweep = Sweep::parse(
      text_source("s.yaml",
                  "version: 1\nname: small\n"
                  "model: {uniform: {layers: 6, forward: 1 ms, backward: 2 ms, output: 1 MiB, "
                  "activation: 9 MiB, parameters: 4 MiB}, batch: 4}\n"
                  "cluster: {devices: 3, memory: 200 MiB}\n"
                  "schedule: {name: 1f1b, micro_batches: 4}\n"),
      {"schedule.name=gpipe,1f1b", "schedule.micro_batches=3,8,16"});
  REQUIRE_MESSAGE(sweep, (sweep ? "" : to_text(sweep.problems())));
  return *std::move(sweep);
}

SweepRun run_of(const Sweep& sweep, const WorkOptions& options = {}) {
  auto run = run_sweep(sweep, options);
  REQUIRE_MESSAGE(run, (run ? "" : to_text(run.problems())));
  return *std::move(run);
}

std::string refusal(const Sweep& sweep, const WorkOptions& options) {
  const auto run = run_sweep(sweep, options);
  REQUIRE_FALSE(run);
  return run.problems().front().message;
}

TEST_CASE("a sweep by one call has each point once, on any number of threads") {
  const Sweep sweep = small_sweep();
  const SweepRun one = run_of(sweep, on_threads(1));
  REQUIRE(one.result.rows.size() == 6);
  CHECK_FALSE(one.stopped);
  CHECK_FALSE(one.partial);
  for (std::uint64_t point = 0; point < 6; ++point)
    CHECK(one.result.rows[point] == sweep.evaluate(point));
  for (const unsigned threads : {2U, 9U})
    CHECK(run_of(sweep, on_threads(threads)).result.rows == one.result.rows);
}

TEST_CASE("a shard has its own points, and progress counts them") {
  const Sweep sweep = small_sweep();
  WorkOptions options = on_threads(2);
  options.shard = Shard{2, 2};
  std::vector<std::uint64_t> told;
  options.progress = [&](std::uint64_t done, std::uint64_t count) {
    CHECK(count == 3);
    told.push_back(done);
  };
  const SweepRun run = run_of(sweep, options);
  CHECK(told == std::vector<std::uint64_t>{1, 2, 3});
  CHECK(run.result.shard == options.shard);
  REQUIRE(run.result.rows.size() == 3);
  for (const SweepRow& row : run.result.rows) CHECK(options.shard->holds(row.point));
}

TEST_CASE("a sweep that was stopped goes on from its file") {
  const Sweep sweep = small_sweep();
  const TemporaryFolder folder;
  std::atomic<bool> stop{false};
  WorkOptions options = on_threads(1);
  options.partial_path = folder["kept"];
  options.version = "1";
  options.stop = &stop;
  options.progress = [&](std::uint64_t done, std::uint64_t) { stop = done == 2; };
  {
    const SweepRun run = run_of(sweep, options);
    CHECK(run.stopped);
    CHECK(run.result.rows.size() == 2);
    CHECK(refusal(sweep, options) == "another sweep is writing it");
  }
  stop = false;
  CHECK(refusal(sweep, options) == "holds the rows of an interrupted sweep");
  options.resume = true;
  options.progress = [&](std::uint64_t, std::uint64_t count) { CHECK(count == 4); };
  SweepRun run = run_of(sweep, options);
  CHECK_FALSE(run.stopped);
  CHECK(run.result.rows == run_of(sweep).result.rows);
  REQUIRE(run.partial);
  run.partial->remove();
  CHECK_FALSE(std::filesystem::exists(options.partial_path));
}

TEST_CASE("where rows cannot be kept a sweep does not begin") {
  const TemporaryFolder folder;
  WorkOptions options = on_threads(2);
  options.partial_path = folder["no-folder/kept"];
  options.progress = [](std::uint64_t, std::uint64_t) { FAIL("a point was evaluated"); };
  CHECK(refusal(small_sweep(), options) == "cannot be written: No such file or directory");
}

}  // namespace
}  // namespace plumbline::test
