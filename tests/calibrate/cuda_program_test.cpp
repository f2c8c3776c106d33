// Op graphs as programs for streams: the order, the waits, the memory; there is no device.
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "calibrate/cuda/program.h"
#include "sim/idle.h"
#include "tests/support/builders.h"
#include "tests/support/subject.h"

namespace plumbline::test {
namespace {

Subject subject_of(const std::string& rest) {
  return Subject(parse_scenario(text_source("program.yaml",
                                            "version: 1\nmodel:\n  uniform: {layers: 4, "
                                            "forward: 1 us, backward: 2 us, "
                                            "output: 1 KiB, parameters: 1 KiB}\n" +
                                                rest),
                                {}),
                 /*for_run=*/true);
}

std::string devices(int count, const std::string& schedule, const std::string& more = "") {
  return "cluster: {devices: " + std::to_string(count) + "}\nschedule: {" + schedule + "}\n" + more;
}

CudaProgramOrFailure program_of(const Subject& subject, const DeviceOrders& orders,
                                const CudaProgramRules& rules = {}) {
  const std::vector<StageBytes> sizes(subject.graph.stage_slots.size(), {4, 8, 8, 16, 24});
  return cuda_program(subject.plan(), sizes, orders, rules);
}

/// The blocks that a step reads or writes.
std::vector<std::uint32_t> blocks_of(const CudaStep& step) {
  std::vector<std::uint32_t> blocks = step.members;
  for (const std::uint32_t block :
       {step.input, step.output, step.kept, step.left, step.output_gradient, step.input_gradient,
        step.gradients, step.from, step.to}) {
    if (block != kNone32) blocks.push_back(block);
  }
  return blocks;
}

/// Of each step: all that has ended when it begins, by streams and waits alone.
std::vector<std::vector<bool>> known_before(const CudaProgram& program) {
  std::vector<std::vector<bool>> known(program.steps.size());
  std::map<std::uint32_t, std::uint32_t> last;
  for (std::uint32_t i = 0; i < program.steps.size(); ++i) {
    const CudaStep& step = program.steps[i];
    known[i].assign(program.steps.size(), false);
    const auto learn = [&](std::uint32_t from) {
      for (std::uint32_t j = 0; j < program.steps.size(); ++j)
        known[i][j] = known[i][j] || known[from][j];
      known[i][from] = true;
    };
    const auto found = last.find(step.stream);
    if (found != last.end()) learn(found->second);
    for (const std::uint32_t before : step.waits) learn(before);
    last[step.stream] = i;
  }
  return known;
}

const std::vector<std::string>& plans() {
  static const std::vector<std::string> all = {
      devices(4, "name: 1f1b, micro_batches: 6"),
      devices(4, "name: gpipe, micro_batches: 5"),
      devices(4, "name: eager-1f1b, micro_batches: 6, mini_batches: 2"),
      devices(2, "name: gpipe, micro_batches: 3, transfers: blocking"),
      devices(4, "name: 1f1b, micro_batches: 4, transfers: blocking"),
      devices(3, "name: 1f1b, micro_batches: 6, mini_batches: 2",
              "plan: {stages: 2, replicas: [2, 1]}\n"),
      devices(4, "name: 1f1b, micro_batches: 4", "plan: {stages: 2, data_parallel: 2}\n"),
      devices(3, "name: data-parallel, micro_batches: 2"),
      devices(4, "name: pipedream, micro_batches: 4, mini_batches: 2"),
      devices(3, "name: pipedream, micro_batches: 4, weights: two",
              "plan: {stages: 2, replicas: [2, 1]}\n")};
  return all;
}

TEST_CASE("cuda: a program does every op once, behind all that the graph says it waits for") {
  for (const std::string& rest : plans()) {
    for (const bool recompute : {false, true}) {
      CAPTURE(rest);
      const Subject subject = subject_of(rest);
      const OpGraph& graph = subject.graph;
      const auto made =
          program_of(subject, nodes_by_slot(graph), {recompute, subject.scenario.schedule.updates});
      REQUIRE(made.program);
      const CudaProgram& program = *made.program;
      CHECK(std::is_sorted(program.order.begin(), program.order.end()));
      CHECK(program.order.size() == graph.size());
      const auto known = known_before(program);
      for (std::uint32_t node = 0; node < graph.size(); ++node) {
        CAPTURE(to_text(graph.activities[node]));
        const ActivityKind kind = graph.activities[node].kind;
        const bool is_step =
            is_transfer(kind) || (is_compute(kind) && kind != ActivityKind::backward_part);
        if (is_step) REQUIRE(program.step_of[node] != kNone32);
        const std::uint32_t after = graph.nodes[node].after;
        if (!is_step || after == graph.size() || program.step_of[after] == kNone32) continue;
        CHECK(known[program.step_of[node]][program.step_of[after]]);
      }
    }
  }
}

TEST_CASE("cuda: whoever uses a block knows that all before it have ended with it") {
  for (const std::string& rest : plans()) {
    for (const bool recompute : {false, true}) {
      CAPTURE(rest);
      const Subject subject = subject_of(rest);
      const auto made = program_of(subject, nodes_by_slot(subject.graph),
                                   {recompute, subject.scenario.schedule.updates});
      REQUIRE(made.program);
      const CudaProgram& program = *made.program;
      const auto known = known_before(program);
      const auto writes = [](const CudaStep& step, std::uint32_t block) {
        if (step.kind == CudaStep::Kind::copy) return step.to == block;
        if (step.kind == CudaStep::Kind::update) return step.gradients == block;  // clears it
        if (step.kind == CudaStep::Kind::forward) return step.output == block || step.kept == block;
        return step.gradients == block || step.input_gradient == block || step.left == block ||
               (step.makes_again && (step.output == block || step.kept == block));
      };
      std::map<std::uint32_t, std::vector<std::uint32_t>> users;
      for (std::uint32_t i = 0; i < program.steps.size(); ++i) {
        for (const std::uint32_t block : blocks_of(program.steps[i])) {
          for (const std::uint32_t before : users[block]) {
            if (before == i) continue;
            if (!writes(program.steps[i], block) && !writes(program.steps[before], block)) continue;
            CHECK(known[i][before]);
          }
          users[block].push_back(i);
        }
      }
    }
  }
}

TEST_CASE("cuda: one device waits for nothing, and holds as many blocks as are in flight") {
  const Subject alone = subject_of(devices(1, "name: gpipe, micro_batches: 3"));
  const auto made = program_of(alone, nodes_by_slot(alone.graph));
  REQUIRE(made.program);
  for (const CudaStep& step : made.program->steps) CHECK(step.waits.empty());
  CHECK(made.program->blocks.size() == 3 + 1);  // what F keeps of three, and gradients
  // 1F1B on the first of four devices holds four micro-batches, however many there are.
  const Subject pipeline = subject_of(devices(4, "name: 1f1b, micro_batches: 12"));
  const auto four = program_of(pipeline, nodes_by_slot(pipeline.graph));
  REQUIRE(four.program);
  std::size_t kept = 0;
  for (const CudaProgram::Block& block : four.program->blocks)
    kept += block.slot == 0 && block.bytes == 16 ? 1 : 0;
  CHECK(kept == 4);
}

TEST_CASE("cuda: orders that wait for each other are a deadlock, told with every device") {
  const Subject subject = subject_of(devices(2, "name: gpipe, micro_batches: 2"));
  DeviceOrders orders = nodes_by_slot(subject.graph);
  // The first device wants its backward before its second forward; the second one is asked for both
  // forwards first.
  auto& first = orders[0];
  const auto is = [&](ActivityKind kind, std::uint32_t m) {
    return [&, kind, m](std::uint32_t node) {
      const Activity& activity = subject.graph.activities[node];
      return activity.kind == kind && activity.micro_batch.value == m;
    };
  };
  std::iter_swap(std::find_if(first.begin(), first.end(), is(ActivityKind::forward, 1)),
                 std::find_if(first.begin(), first.end(), is(ActivityKind::backward, 1)));
  const auto made = program_of(subject, orders);
  REQUIRE_FALSE(made.program);
  CHECK(made.failure.kind == RunFailure::Kind::deadlock);
  CHECK(to_text(subject.graph, made.failure.stands) ==
        "  device 0: 0B1 waits for recv 0B1\n  device 1: 1F1 waits for recv 1F1\n");
}

TEST_CASE("cuda: an op whose operands are not there ends the run before it begins") {
  const Subject subject = subject_of(devices(1, "name: gpipe, micro_batches: 2"));
  DeviceOrders orders = nodes_by_slot(subject.graph);
  std::reverse(orders[0].begin(), orders[0].begin() + 4);  // both backwards first
  const auto made = program_of(subject, orders);
  REQUIRE_FALSE(made.program);
  CHECK(made.failure.kind == RunFailure::Kind::failed);
  CHECK(made.failure.message.find("runs before 0F") != std::string::npos);
  CHECK(made.failure.stands.front().state == DeviceStand::State::failed);
}

}  // namespace
}  // namespace plumbline::test
