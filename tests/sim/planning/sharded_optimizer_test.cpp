// A sharded optimizer (ZeRO-1): closed forms, memory, and what stays as it was.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "sim/planning/planning.h"
#include "sim/planning/predict.h"
#include "tests/support/builders.h"
#include "tests/support/close_to.h"
#include "tests/support/scenario_of.h"
#include "tests/support/temporary_folder.h"

namespace plumbline::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

Metrics metrics_of(const TestPipeline& t) {
  const OpGraph graph = graph_of(t);
  const Trace trace = simulate(graph);
  if (!graph.rates_change()) CHECK(trace == longest_path(graph));
  return measure(graph, trace, {});
}

Duration share_time(std::int64_t r, Bytes bytes, const Link& link) {
  return (r - 1) * link.latency +
         (link.bandwidth ? transfer_time(share_volume(bytes, r), *link.bandwidth) : Duration{});
}

TEST_CASE("in a half of an all-reduce a member sends (r-1)/r of the bytes, rounded down") {
  CHECK(share_volume({1200}, 1) == Bytes{0});
  CHECK(share_volume({1200}, 2) == Bytes{600});
  CHECK(share_volume({1200}, 4) == Bytes{900});
  CHECK(share_volume({10}, 3) == Bytes{6});
  CHECK(share_volume({0}, 5) == Bytes{0});
  for (std::int64_t r = 1; r < 9; ++r) CHECK(ring_volume({7560}, r) == share_volume({7560}, r) * 2);
}

TEST_CASE("sharded data-parallel training: forward, backward, scatter, a share's update, gather") {
  for (std::uint32_t devices = 1; devices <= 9; ++devices) {
    CAPTURE(devices);
    TestPipeline t = equal_pipeline(1, milliseconds(3), milliseconds(5));
    t.schedule = "data-parallel";
    t.micro_batches = 4;
    t.parameters = {7'000'001};
    t.update = microseconds(70);
    t.link = {microseconds(5), BytesPerSecond{12'000'000'000}};
    t.options.copies = devices;
    t.options.sharing.state = Sharded::optimizer;
    const Duration half = share_time(devices, t.parameters, t.link);
    const Duration update{(70'000 + devices - 1) / devices};
    const Metrics metrics = metrics_of(t);
    CHECK(metrics.makespan == 4 * milliseconds(8) + 2 * half + update);
    CHECK(metrics.all_reduces == (devices > 1 ? 2 : 0));
    CHECK(metrics.all_reduce_bytes == share_volume(t.parameters, devices) * (2 * devices));
    for (const DeviceMetrics& device : metrics.devices) {
      CHECK(device.idle_by_cause.all_reduce == 2 * half);
      CHECK(device.idle_by_cause.update == Duration{});
      CHECK(device.busy == 4 * milliseconds(8) + update);
    }
    t.parameters = {0};  // nothing is exchanged
    CHECK(makespan_of(t) == 4 * milliseconds(8) + update);
  }
}

TEST_CASE("on a levelled cluster shares are scattered outwards and gathered inwards") {
  TestPipeline t = equal_pipeline(1, milliseconds(3), milliseconds(5));
  t.schedule = "data-parallel";
  t.parameters = {12'000'000};
  t.update = milliseconds(12);
  const Link inner{microseconds(5), BytesPerSecond{12'000'000'000}};
  const Link outer{microseconds(30), BytesPerSecond{1'000'000'000}};
  t.cluster = Cluster{{{"server", 4, inner}, {"cluster", 3, outer}}, std::nullopt};
  t.options.copies = 12;
  t.options.hierarchical = true;
  t.options.sharing.state = Sharded::optimizer;
  // As an all-reduce, in two halves; each device updates a twelfth.
  const Duration inside = 3 * microseconds(5) + microseconds(750);
  const Duration outside = 4 * microseconds(30) + milliseconds(16);
  CHECK(makespan_of(t) == milliseconds(8) + 2 * inside + outside + milliseconds(1));
  const OpGraph graph = graph_of(t);
  const Trace trace = simulate(graph);
  SimTime scattered;
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    if (graph.activities[node].kind == ActivityKind::reduce_scatter)
      scattered = std::max(scattered, trace.spans[node].end);
  }
  CHECK(scattered.time_since_epoch() == milliseconds(8) + inside + outside / 2);
}

TEST_CASE("gradients are scattered while others compute, weights gathered while others update") {
  // The pipeline takes 15 ms; stage 1 ends 2 ms earlier and is scattered meanwhile; stage 0 takes
  // 1 ms more. Then all update for 3 ms instead of 6, and gather for 1 ms.
  TestPipeline t = equal_pipeline(2, milliseconds(1), milliseconds(2));
  t.schedule = "1f1b";
  t.micro_batches = 4;
  t.parameters = {2'000'000};
  t.update = milliseconds(6);
  t.link.bandwidth = BytesPerSecond{1'000'000'000};
  t.options.copies = 2;
  t.options.sharing.state = Sharded::optimizer;
  CHECK(metrics_of(t).makespan == milliseconds(15 + 1 + 3 + 1));
  // Both stages on one device: the weights of the first are gathered while the second updates.
  t.devices = {{0}, {0}};
  const Metrics shared = metrics_of(t);
  // The last backward of stage 1 ends 2 ms before that of stage 0.
  CHECK(shared.makespan == milliseconds(4 * 6 + 1 + 2 * 3 + 1));
  CHECK(shared.all_reduces == 4);
  for (const DeviceMetrics& device : shared.devices) {
    CHECK(device.idle_by_cause.all_reduce == milliseconds(2));
    CHECK(device.idle_by_cause.update == Duration{});
  }
  // Who ends first waits for the updates of others, then for their weights.
  TestPipeline uneven = t;
  uneven.devices = {};
  uneven.replicas = {2, 1};
  uneven.options.copies = 1;
  const Metrics other = metrics_of(uneven);
  CHECK(other.devices[0].idle_by_cause.update == milliseconds(3));  // 6 ms on stage 1
  CHECK(other.devices[2].idle_by_cause.update == Duration{});
}

TEST_CASE("each bucket is scattered as soon as it is made, the weights are gathered at once") {
  TestPipeline t = equal_pipeline(1, milliseconds(3), milliseconds(6));
  t.schedule = "data-parallel";
  t.micro_batches = 2;
  t.parameters = {8'000'000};
  t.link.bandwidth = BytesPerSecond{1'000'000'000};
  t.options.copies = 2;
  t.options.sharing.state = Sharded::optimizer;
  StageCosts costs = costs_of(t);
  costs.stages.front().buckets = {
      {.backward = milliseconds(2), .gradients = {4'000'000}, .reduced = {4'000'000}},
      {.backward = milliseconds(4), .gradients = {4'000'000}, .reduced = {4'000'000}}};
  const auto graph =
      lower(schedule_of(t), costs, {DeviceId{0}}, flat_cluster(2, t.link), t.options, {});
  REQUIRE(graph);
  const Metrics metrics = measure(*graph, simulate(*graph), {});
  CHECK(metrics.makespan == milliseconds(2 * 9 + 2 + 4));
  CHECK(metrics.all_reduces == 3);
}

TEST_CASE("neighbours slow a share of an update as they slow all of it") {
  TestPipeline t = equal_pipeline(1, milliseconds(3), milliseconds(5));
  t.schedule = "data-parallel";
  t.update = milliseconds(4);
  t.options.copies = 2;
  t.options.sharing.state = Sharded::optimizer;
  StageCosts costs = costs_of(t);
  const std::vector<double> none = {3e6, 3e6};
  costs.slowdowns = {
      {none, {5e6, 5e6}, none, none, {}, {4e6, 6e6}}};  // updates: half as much longer
  const auto graph =
      lower(schedule_of(t), costs, {DeviceId{0}}, flat_cluster(2, {}), t.options, {});
  REQUIRE(graph);
  CHECK(makespan(*graph, simulate(*graph)) == milliseconds(3 + 5 + 3));
}

std::string scenario_text(int zero_stage, const std::string& plan) {
  return "version: 1\nmodel: {uniform: {layers: 4, forward: 1 ms, backward: 2 ms, update: 1 ms, "
         "parameters: 999 B, output: 10 B, activation: 100 B}}\n"
         "cluster: {devices: 4, memory: 100 MB}\nplan: " +
         plan +
         "\nschedule: {name: 1f1b, micro_batches: 12}\n"
         "training: {optimizer_state: 2, zero_stage: " +
         std::to_string(zero_stage) + "}\n";
}

TEST_CASE("each device holds its share of the optimizer state, and all of the rest") {
  for (const std::string plan :
       {"{stages: 2, data_parallel: 2}", "{stages: 2, replicas: [2, 2]}"}) {
    CAPTURE(plan);
    const auto whole = predict(scenario_of(scenario_text(0, plan)));
    const auto shared = predict(scenario_of(scenario_text(1, plan)));
    REQUIRE(whole);
    REQUIRE(shared);
    for (std::size_t slot = 0; slot < 4; ++slot) {
      CHECK(whole->memory[slot].peak.optimizer == Bytes{3996});
      CHECK(shared->memory[slot].peak.optimizer == Bytes{1998});
      CHECK(shared->memory[slot].peak.gradients == whole->memory[slot].peak.gradients);
      CHECK(shared->memory[slot].peak.weights == whole->memory[slot].peak.weights);
    }
    CHECK(shared->setup.notes.size() == whole->setup.notes.size());
  }
  const auto uneven = predict(scenario_of(scenario_text(1, "{stages: 2, replicas: [3, 1]}")));
  REQUIRE(uneven);
  CHECK(uneven->memory[0].peak.optimizer == Bytes{1332});
  CHECK(uneven->memory[3].peak.optimizer == Bytes{3996});
}

TEST_CASE("where each stage is on one device nothing is shared, and that is told") {
  const auto alone = predict(scenario_of(scenario_text(1, "{stages: 4}")));
  const auto without = predict(scenario_of(scenario_text(0, "{stages: 4}")));
  REQUIRE(alone);
  REQUIRE(without);
  CHECK(alone->metrics.makespan == without->metrics.makespan);
  CHECK(alone->setup.notes.back() ==
        "training.zero_stage is 1, but each stage is on one device: nothing is shared");
}

/// Four devices with all of the model each: so many copies, each of a group of 4 / copies.
Outcome in_groups(int copies, const std::string& training) {
  const std::string devices = std::to_string(copies);
  const std::string layer = std::string(", flops: 1 GFLOP, parameters: 4 MB") +
                            (copies == 4 ? "}\n" : ", replicated: 4 MB}\n");
  const TemporaryFolder folder;
  const std::string profile = folder.file(
      "p.yaml", "version: 1\nkind: profile\ngroup: {devices: " + std::to_string(4 / copies) +
                    "}\nlayers:\n  - {name: a" + layer + "  - {name: b" + layer);
  auto outcome = predict(scenario_of(
      "version: 1\nmodel: {profile: " + profile + "}\ncluster: {devices: " + devices +
      ", link: {bandwidth: 1 GB/s}, device: {peak: 1 TFLOP/s, memory_bandwidth: 10 GB/s, link: 1 "
      "GB/s}}\nplan: {stages: 1, data_parallel: " +
      devices + "}\nschedule: {name: 1f1b, micro_batches: 3}\ntraining: " + training));
  REQUIRE(outcome);
  return *std::move(outcome);
}

TEST_CASE("a group that holds all of a model is as so many copies of it") {
  for (const std::string rest : {"", ", gradients: 2", ", optimizer_state: 6, gradients: 2"}) {
    CAPTURE(rest);
    const Outcome copies = in_groups(4, "{zero_stage: 1" + rest + "}\n");
    for (const int groups : {1, 2}) {
      CAPTURE(groups);
      const Outcome group = in_groups(groups, "{zero_stage: 1" + rest + "}\n");
      CHECK(group.metrics.makespan == copies.metrics.makespan);
      CHECK(group.memory[0].peak.optimizer == copies.memory[0].peak.optimizer);
      CHECK(group.memory[0].peak.sum() == copies.memory[0].peak.sum());
      CHECK(group.setup.notes == copies.setup.notes);  // it is not that nothing is shared
      CHECK(group.devices_used() == 4);
    }
    const Outcome whole_copies = in_groups(4, "{zero_stage: 0" + rest + "}\n");
    const Outcome whole = in_groups(1, "{zero_stage: 0" + rest + "}\n");
    CHECK(whole.metrics.makespan == whole_copies.metrics.makespan);
    CHECK(whole.memory[0].peak.sum() == whole_copies.memory[0].peak.sum());
    // In the group first, and then over the copies of half of it: no more than one ring of all.
    CHECK(in_groups(2, "{zero_stage: 0" + rest + "}\n").metrics.makespan == whole.metrics.makespan);
  }
}

/// Two layers of 800 MB, all replicated in groups of 4, on 4 copies of the one stage.
double iteration_of(const std::string& costs, const std::string& rest) {
  const TemporaryFolder folder;
  const std::string layer = "parameters: 800 MB, replicated: 800 MB, " + costs + "}\n";
  const std::string profile = folder.file(
      "p.yaml", "version: 1\nkind: profile\ngroup: {devices: 4}\nlayers:\n  - {name: a, " + layer +
                    "  - {name: b, " + layer + rest.substr(0, rest.find('|')));
  const auto outcome = predict(scenario_of(
      "version: 1\nmodel: {profile: " + profile +
      "}\ncluster: {devices: 4, link: {bandwidth: 100 GB/s}, device: {peak: 1 TFLOP/s, "
      "memory_bandwidth: 1 TB/s, link: 100 GB/s}}\nplan: {stages: 1, data_parallel: 4}\n"
      "schedule: {name: 1f1b, micro_batches: 1}\n" +
      rest.substr(rest.find('|') + 1)));
  REQUIRE(outcome);
  return outcome->iteration_time_s;
}

TEST_CASE("of layers that say what their updates take, copies add up all gradients") {
  // The share of the group's sending in such an update is unknown: it gets none.
  const double ring = 2 * 1.5 * 800e6 / 100e9;  // 2 x 3/4 x 2 x 800 MB
  const double compute = 2 * 3e-6;              // F, I and W of 1 MFLOP at half of the peak
  const std::string flops = "flops: 0.5 MFLOP, update: 0 ms";
  for (const char* stage : {"|training: {zero_stage: 0}\n", "|training: {zero_stage: 1}\n"}) {
    CAPTURE(stage);
    CHECK(iteration_of(flops, stage) == close_to(ring + compute, 1e-3));
    CHECK(iteration_of("forward: 1 us, backward: 2 us, update: 0 ms", stage) ==
          close_to(ring + compute, 1e-3));
  }
}

TEST_CASE("neighbours slow updates of groups and copies down, sharded or not") {
  const std::string factors = "slowdown: {block: [1, 1.2, 1.4, 1.5], update: [1, 1.2, 1.4, 1.5]}\n";
  for (const char* stage : {"|training: {zero_stage: 0, optimizer_state: 2}\n",
                            "|training: {zero_stage: 1, optimizer_state: 2}\n"}) {
    CAPTURE(stage);
    const double alone = iteration_of("kind: block, flops: 1 GFLOP", stage);
    CHECK(iteration_of("kind: block, flops: 1 GFLOP", factors + stage) > 1.05 * alone);
    CHECK(iteration_of("kind: block, flops: 1 GFLOP",
                       "slowdown: {block: [1, 1, 1, 1], update: [1, 1, 1, 1]}\n" +
                           std::string(stage)) == close_to(alone, 1e-6));
  }
}

TEST_CASE("the planner knows that replicas share the optimizer state") {
  // One device holds 4 x 999 B four times; with the state shared by four less than that fits.
  const auto planned = [](int zero_stage, int memory) {
    const Scenario scenario = scenario_of(
        "version: 1\nmodel: {uniform: {layers: 4, forward: 1 ms, backward: 2 ms, update: 1 ms, "
        "parameters: 1000 "
        "B, output: 1 kB, activation: 0 B}}\ncluster: {devices: 4, memory: " +
        std::to_string(memory) +
        " B, link: {bandwidth: 100 MB/s}}\nplan: {partition: pipedream, stages: 1}\n"
        "schedule: {name: 1f1b, micro_batches: 12}\n"
        "training: {optimizer_state: 2, zero_stage: " +
        std::to_string(zero_stage) + "}\n");
    return plan_scenario(scenario, {});
  };
  CHECK(planned(0, 16000));
  CHECK_FALSE(planned(0, 15999));
  const auto min = planned(1, 10000);  // weights, gradients, and half as much in four shares
  REQUIRE(min);
  CHECK(min->winner().candidate.config() == "4");
  CHECK(min->winner().candidate.stages[0].peak_memory == Bytes{10000});
  CHECK(min->winner().fits);
  CHECK(min->plans.data_parallel.peak_memory == Bytes{10000});
  CHECK_FALSE(planned(1, 9999));
  // Data parallelism: three micro-batches a device before each step, of which nothing hides the
  // gather, 3/4 of 4 kB, and in which each device updates a quarter.
  CHECK(min->plans.data_parallel.period_s == close_to((3 * (4 + 8) + 1 + 0.03) / 12 * 1e-3));
  CHECK(*min->data_parallel_s == close_to(min->plans.data_parallel.period_s, 0.001));
  const auto whole = planned(0, 16000);
  REQUIRE(whole);
  CHECK(whole->plans.data_parallel.period_s == close_to((3 * (4 + 8) + 4) / 12.0 * 1e-3));
}

TEST_CASE("the planner knows that a group shares the optimizer state of what it holds alike") {
  // Two stages of two layers: weights and gradients, and of the state of 1000 B a quarter.
  const auto planned = [](int zero_stage, int memory) {
    const Scenario scenario = scenario_of(
        "version: 1\nmodel: {uniform: {layers: 4, forward: 1 ms, backward: 2 ms, parameters: 1000 "
        "B, "
        "replicated: 1000 B}, group: {devices: 4}}\ncluster: {devices: 2, memory: " +
        std::to_string(memory) +
        " B}\nplan: {partition: pipedream}\nschedule: {name: 1f1b, micro_batches: 4}\n"
        "training: {optimizer_state: 6, zero_stage: " +
        std::to_string(zero_stage) + "}\n");
    return plan_scenario(scenario, {});
  };
  const auto shared = planned(1, 7000);
  REQUIRE(shared);
  CHECK(shared->winner().candidate.config() == "1-1");
  for (const PlannedStage& stage : shared->winner().candidate.stages)
    CHECK(stage.peak_memory == Bytes{2 * 2000 + 6 * 500});
  CHECK(shared->winner().fits);
  CHECK_FALSE(planned(1, 6999));
  CHECK(planned(0, 16000));
  CHECK_FALSE(planned(0, 15999));
}

TEST_CASE("a schedule without a flush has no sharded optimizer") {
  const auto refused = parse_scenario(
      text_source("sharded.yaml",
                  "version: 1\nmodel: {uniform: {layers: 2, forward: 1 ms, backward: 1 ms}}\n"
                  "cluster: {devices: 2}\nschedule: {name: pipedream, micro_batches: 4}\n"
                  "training: {zero_stage: 1}\n"),
      {});
  REQUIRE_FALSE(refused);
  CHECK(refused.problems().front().message ==
        "training.zero_stage is 1, but the schedule 'pipedream' has no flush");
}

}  // namespace
}  // namespace plumbline::test
