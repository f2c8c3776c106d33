// The contents of each stage as a table.
//
// SPDX-License-Identifier: MIT
#include "sim/report/stage_table.h"

#include <doctest/doctest.h>

#include "sim/setup/resolve_setup.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

std::string table_of(const std::string& text) {
  const auto scenario = parse_scenario(text_source("s.yaml", text), {});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  const auto pipeline = resolve_setup(*scenario, /*for_run=*/false);
  REQUIRE_MESSAGE(pipeline, (pipeline ? "" : to_text(pipeline.problems())));
  return stage_table(*pipeline).print();
}

const std::string kLayers =
    "version: 1\nmodel: {layers: [{name: a, forward: 1 ms, backward: 2 ms, parameters: 3 MiB, "
    "output: 1 MiB, activation: 2 MiB}, {name: b, forward: 2 ms, backward: 4 ms, update: 1 ms, "
    "parameters: 1 MiB, output: 4 MiB, activation: 5 MiB}, {name: c, forward: 3 ms, backward: 6 "
    "ms, "
    "activation: 1 MiB}]}\n";

TEST_CASE("each stage tells its layers, its devices in all copies, its times and bytes") {
  CHECK(table_of(kLayers +
                 "cluster: {devices: 4}\nplan: {partition: [[a, b], [c]], data_parallel: 2}\n"
                 "schedule: {name: gpipe, micro_batches: 2}\n") ==
        "  stage  layers  from  to  devices  forward  backward  update  parameters   kept  sends\n"
        "  0           2     a   b      0-1     3 ms      6 ms    1 ms       4 MiB  7 MiB  4 MiB\n"
        "  1           1     c   c      2-3     3 ms      6 ms     0 s         0 B  1 MiB    0 B\n"
        "all stages take the same\n");
}

TEST_CASE("recomputation stands apart, and the slowest stage is counted by replicas") {
  // 3 + 6 + 3 ms on two devices, 3 + 6 + 3 on one.
  CHECK(table_of(kLayers +
                 "cluster: {devices: 3}\nplan: {partition: [[a, b], [c]], replicas: [2, 1]}\n"
                 "schedule: {name: gpipe, micro_batches: 2, recompute: full}\n") ==
        "  stage  layers  from  to  devices  forward  backward  recompute  update  parameters  "
        "kept  sends\n"
        "  0           2     a   b      0-1     3 ms      6 ms       3 ms    1 ms       4 MiB   "
        "0 B  4 MiB\n"
        "  1           1     c   c        2     3 ms      6 ms       3 ms     0 s         0 B   "
        "0 B    0 B\n"
        "slowest: stage 1 takes 1.333 times the mean of all stages\n");
}

TEST_CASE("one stage has nothing to be compared with") {
  const std::string text = table_of(kLayers + "schedule: {name: gpipe, micro_batches: 2}\n");
  CHECK(text.find("slowest") == std::string::npos);
  CHECK(text.find("the same") == std::string::npos);
}

}  // namespace
}  // namespace plumbline::test
