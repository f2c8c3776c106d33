// Peak memory by hand.
// SPDX-License-Identifier: MIT
#include "sim/memory.h"

#include <doctest/doctest.h>

#include "tests/support/builders.h"

namespace plumbline {
namespace {

using std::chrono::nanoseconds;

std::vector<DeviceMemory> memory_of(const test::TestPipeline& t, MemoryRules rules = {}) {
  const OpGraph graph = test::graph_of(t);
  rules.weight_versions.resize(t.forward.size(), 1);
  rules.recompute = t.options.recompute;
  const auto steps = memory_steps(graph, simulate(graph), test::costs_of(t),
                                  schedule_of(t).shape.positions, rules);
  return measure_memory(graph, test::costs_of(t), rules, steps);
}

test::TestPipeline pipeline(const std::string& schedule, std::uint32_t stages,
                            std::uint32_t micro_batches) {
  test::TestPipeline t = test::equal_stages(stages, nanoseconds(10), nanoseconds(20));
  t.schedule = schedule;
  t.micro_batches = micro_batches;
  t.activation = {100};
  t.output = {10};
  t.parameters = {1000};
  return t;
}

TEST_CASE(
    "micro-batches in flight: m for GPipe, min(m, p-s) for 1F1B, min(m, 2(p-s)-1) for eager 1F1B, "
    "1 for naive") {
  for (std::uint32_t p = 1; p <= 6; ++p) {
    for (std::uint32_t m = 1; m <= 12; ++m) {
      for (std::uint32_t s = 0; s < p; ++s) {
        CAPTURE(p);
        CAPTURE(m);
        CAPTURE(s);
        CHECK(memory_of(pipeline("gpipe", p, m))[s].peak_in_flight == m);
        CHECK(memory_of(pipeline("1f1b", p, m))[s].peak_in_flight == std::min(m, p - s));
        CHECK(memory_of(pipeline("eager-1f1b", p, m))[s].peak_in_flight ==
              std::min(m, 2 * (p - s) - 1));
        CHECK(memory_of(pipeline("naive", p, m))[s].peak_in_flight == 1);
        CHECK(memory_of(pipeline("delayed-backward", p, m))[s].peak_in_flight == std::min(m, 2U));
      }
    }
  }
}

TEST_CASE("the peak of 1F1B's first device is reached at its last warm-up forward") {
  test::TestPipeline t = pipeline("1f1b", 4, 8);
  t.output = {};
  t.activation = {};
  t.parameters = {};
  const auto memory = memory_of(t);
  CHECK(memory[0].peak.sum() == Bytes{0});
  CHECK(memory[0].peak_op == "0F3");
  CHECK(memory[3].peak_op == "3F0");
}

TEST_CASE("two stages, two micro-batches, GPipe: every part of the peak") {
  // Device 1 receives F0 (arrives at once, free link) and F1; B of stage 1 releases activation and
  // buffer.
  const auto memory =
      memory_of(pipeline("gpipe", 2, 2),
                {.optimizer_state = 2.0, .recompute = false, .weight_versions = {3, 1}});
  CHECK(memory[0].peak.weights == Bytes{1000});
  CHECK(memory[0].peak.gradients == Bytes{1000});
  CHECK(memory[0].peak.optimizer == Bytes{2000});
  CHECK(memory[0].peak.stash == Bytes{2000});
  CHECK(memory[0].peak.activations == Bytes{200});
  CHECK(memory[0].peak.buffers == Bytes{10});  // one gradient at a time
  CHECK(memory[0].peak_op == "0B0");
  CHECK(memory[1].peak.activations == Bytes{200});
  CHECK(memory[1].peak.buffers == Bytes{20});
  CHECK(memory[1].peak_op == "1F1");
  CHECK(memory[1].peak.sum() == Bytes{1000 + 1000 + 2000 + 200 + 20});
}

TEST_CASE(
    "recomputation keeps inputs, holds outputs until they are sent, and one full set in the "
    "backward") {
  test::TestPipeline t = pipeline("gpipe", 2, 4);
  t.options.recompute = true;
  const auto memory = memory_of(t);
  // Device 0: its own input counts nothing; in B it holds one set and the gradient that came for
  // it.
  CHECK(memory[0].peak.activations == Bytes{100});
  CHECK(memory[0].peak.buffers == Bytes{10});
  // Device 1: four inputs are kept, and one set exists in the first backward.
  CHECK(memory[1].peak.activations == Bytes{100});
  CHECK(memory[1].peak.buffers == Bytes{40});
  CHECK(memory[1].peak_op == "1B0");
  CHECK(makespan_of(t) == 5 * nanoseconds(10 + 30));
}

TEST_CASE("a slow link makes outputs of recomputed stages wait in memory") {
  test::TestPipeline t = pipeline("gpipe", 2, 4);
  t.options.recompute = true;
  t.activation = {1};
  t.link.bandwidth = BytesPerSecond{100'000'000};  // 10 B take 100 ns
  CHECK(memory_of(t)[0].peak.buffers == Bytes{40});
}

TEST_CASE(
    "stages that share a device count one micro-batch once, and pass tensors without a buffer") {
  test::TestPipeline t = pipeline("1f1b", 3, 4);
  t.devices = {{0}, {0}, {1}};
  const auto memory = memory_of(t);
  CHECK(memory[0].peak_in_flight == 2);
  CHECK(memory[0].peak.activations == Bytes{400});
  CHECK(memory[0].peak.buffers == Bytes{10});
}

TEST_CASE("ops that take no time hold their memory all the same, one micro-batch after the other") {
  test::TestPipeline t = pipeline("1f1b", 2, 4);
  t.forward[1] = t.backward[1] = {};
  const auto memory = memory_of(t);
  CHECK(memory[1].peak_in_flight == 1);
  CHECK(memory[1].peak.activations == Bytes{100});
  CHECK(memory[1].peak.buffers == Bytes{10});
  t.forward[0] = t.backward[0] = {};
  CHECK(memory_of(t)[0].peak_in_flight == 2);
}

TEST_CASE("running sums end at zero and never fall below") {
  for (const char* schedule :
       {"naive", "gpipe", "1f1b", "eager-1f1b", "delayed-backward", "pipedream"}) {
    for (const bool recompute : {false, true}) {
      for (const bool blocking : {false, true}) {
        test::TestPipeline t = pipeline(schedule, 3, 20);
        t.options.recompute = recompute;
        t.options.blocking = blocking;
        t.link = {nanoseconds(3), BytesPerSecond{1'000'000'000}};
        const OpGraph graph = test::graph_of(t);
        const Trace trace = simulate(graph);
        for (std::uint32_t slot = 0; slot < 3; ++slot) {
          const auto steps =
              memory_steps(graph, trace, test::costs_of(t), schedule_of(t).shape.positions,
                           {.recompute = recompute, .weight_versions = {1, 1, 1}})[slot];
          for (const MemoryStep& step : steps) {
            CHECK(step.activations >= Bytes{0});
            CHECK(step.buffers >= Bytes{0});
            CHECK(step.in_flight >= 0);
          }
          CHECK(steps.back().activations == Bytes{0});
          CHECK(steps.back().buffers == Bytes{0});
          CHECK(steps.back().in_flight == 0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace plumbline
