// What takes less memory, and in which order it is told.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/ways_to_fit.h"

#include <doctest/doctest.h>

#include "sim/planning/planning.h"
#include "sim/planning/predict.h"
#include "tests/support/temporary_folder.h"

namespace plumbline::test {
namespace {

struct Found {
  Outcome now;
  std::vector<WayToFit> ways;
};

Found ways_of(const std::string& path, const std::vector<std::string>& overrides) {
  auto scenario = read_scenario(path, overrides);
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  const auto resolved = resolve_plan(*std::move(scenario));
  REQUIRE(resolved);
  auto outcome = predict(*resolved, Evaluation::fastest);
  REQUIRE(outcome);
  std::vector<WayToFit> ways = ways_to_fit(path, overrides, *resolved, *outcome);
  return {*std::move(outcome), std::move(ways)};
}

const WayToFit* find(const std::vector<WayToFit>& ways, const std::string& start) {
  const auto found = std::find_if(ways.begin(), ways.end(),
                                  [&](const WayToFit& way) { return way.what.starts_with(start); });
  return found == ways.end() ? nullptr : &*found;
}

TEST_CASE("each way takes less, and its keys give what it says") {
  const TemporaryFolder folder;
  const std::string path =
      folder.file("s.yaml",
                  "version: 1\n"
                  "model: {uniform: {layers: 8, forward: 1 ms, backward: 2 ms, output: 1 MiB,\n"
                  "        activation: 10 MiB, parameters: 20 MiB}, batch: 2}\n"
                  "cluster: {devices: 8, memory: 220 MiB}\n"
                  "plan: {stages: 2, data_parallel: fill}\n"
                  "schedule: {name: 1f1b}\n"
                  "training: {mini_batch_size: 64, micro_batch_size: 4, optimizer_state: 2}\n");
  const auto [now, ways] = ways_of(path, {});
  REQUIRE_FALSE(ways.empty());
  REQUIRE(now.fits() == false);
  for (const char* what : {"recompute all layers", "share the optimizer state",
                           "micro-batches of 2", "4 stages instead of 2"}) {
    CAPTURE(what);
    CHECK(find(ways, what));
  }
  bool fitted = true;
  double before_s = 0;
  for (const WayToFit& way : ways) {
    CAPTURE(way.what);
    const auto again = ways_of(path, way.overrides);
    std::int64_t peak = 0;
    for (const DeviceMemory& memory : again.now.memory)
      peak = std::max(peak, memory.peak.sum().count);
    CHECK(peak == way.peak_memory_bytes);
    CHECK(again.now.iteration_time_s == way.iteration_time_s);
    CHECK(again.now.samples_per_iteration() == 64);
    CHECK((fitted || !*way.fits));  // those that fit come first
    if (*way.fits) CHECK(way.iteration_time_s >= before_s);
    if (*way.fits) before_s = way.iteration_time_s;
    fitted = *way.fits;
  }
}

TEST_CASE("where nothing fits alone, pairs are tried") {
  const TemporaryFolder folder;
  const std::string path = folder.file(
      "s.yaml",
      "version: 1\n"
      "model: {uniform: {layers: 4, forward: 1 ms, backward: 2 ms, activation: 100 MiB,\n"
      "        output: 1 MiB, parameters: 100 MiB}, batch: 1}\n"
      "cluster: {devices: 8, memory: 700 MiB}\n"
      "plan: {stages: 2, data_parallel: fill}\n"
      "schedule: {name: gpipe}\n"
      "training: {mini_batch_size: 16, micro_batch_size: 1, optimizer_state: 2}\n");
  const auto [now, ways] = ways_of(path, {});
  REQUIRE_FALSE(ways.empty());
  CHECK(ways.front().fits == true);
  CHECK(ways.front().what.find("; ") != std::string::npos);
}

}  // namespace
}  // namespace plumbline::test
