// Real runs on the synthetic backend: what was measured obeys the laws, and the books agree with
// the trace.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "calibrate/runtime/run_record.h"
#include "sim/engine/idle.h"
#include "sim/engine/release.h"
#include "sim/engine/simulate.h"
#include "tests/calibrate/runtime/synthetic_runs.h"
#include "tests/support/rules.h"

namespace plumbline::test {
namespace {

Subject example(const std::string& file, const std::vector<std::string>& overrides = {}) {
  return Subject(read_scenario("examples/" + file + ".yaml", overrides), /*for_run=*/true);
}

void check_waits(const OpGraph& graph, const Trace& trace) {
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    const Span& span = trace.spans[node];
    CAPTURE(to_text(graph.activities[node]));
    CHECK(span.begin >= SimTime{});
    CHECK(span.end >= span.begin);
    if (graph.nodes[node].input != graph.size())
      CHECK(span.begin >= trace.spans[graph.nodes[node].input].end);
    if (is_compute(graph.activities[node].kind)) CHECK(span.begin >= released(graph, trace, node));
  }
  for (const Join& join : graph.joins) {
    for (const std::uint32_t producer : join.inputs)
      CHECK(trace.spans[join.node].begin >= trace.spans[producer].end);
  }
}

/// Streams and channels carry one thing at a time, in the order of the graph.
void check_order(const OpGraph& graph, const Trace& trace) {
  std::vector<std::uint32_t> last(graph.resources(), graph.size());
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    const Node& n = graph.nodes[node];
    CAPTURE(to_text(graph.activities[node]));
    for (const std::uint32_t resource : {n.resource, n.peer_resource}) {
      const std::uint32_t before = last[resource];
      if (before != graph.size() && before != node)
        CHECK(trace.spans[node].begin >= trace.spans[before].end - graph.cost(before).latency);
      last[resource] = node;
    }
  }
}

void check_lengths(const OpGraph& graph, const Trace& trace) {
  const std::vector<bool> shared = graph.shared_channels();
  const bool any_shared = std::find(shared.begin(), shared.end(), true) != shared.end();
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    const Duration took = trace.spans[node].end - trace.spans[node].begin;
    const Duration min = graph.cost(node).hold + graph.cost(node).latency;
    CAPTURE(to_text(graph.activities[node]));
    CHECK(took >= min);
    if (!any_shared && !is_compute(graph.activities[node].kind)) CHECK(took == min);
  }
}

void check_books(const Subject& subject, const MeasuredIteration& iteration) {
  const OpGraph& graph = subject.graph;
  const StageCosts& costs = subject.setup.costs;
  const auto steps =
      memory_steps(graph, iteration.trace, costs, subject.setup.schedule.shape.positions,
                   memory_rules(subject.setup));
  const auto expected = measure_memory(graph, costs, memory_rules(subject.setup), steps);
  REQUIRE(iteration.memory.size() == expected.size());
  for (std::uint32_t slot = 0; slot < expected.size(); ++slot) {
    CAPTURE(slot);
    const MemoryParts& measured = iteration.memory[slot].peak;
    const MemoryParts& peak = expected[slot].peak;
    CHECK(measured.activations + measured.buffers == peak.activations + peak.buffers);
    CHECK(measured.weights == peak.weights);
    CHECK(measured.gradients == peak.gradients);
    CHECK(measured.optimizer == peak.optimizer);
    CHECK(measured.stash <= peak.stash);
    CHECK(iteration.memory[slot].peak_op == expected[slot].peak_op);
    CHECK(iteration.memory[slot].peak_in_flight == expected[slot].peak_in_flight);
    CHECK(iteration.memory[slot].weight_versions <= expected[slot].weight_versions);
    if (steps[slot].empty()) continue;
    CHECK(steps[slot].back().activations == Bytes{});
    CHECK(steps[slot].back().buffers == Bytes{});
  }
  // The versions reported for a stage are those of its fullest replica.
  for (std::uint32_t s = 0; s < graph.stage_slots.size(); ++s) {
    if (subject.setup.schedule.shape.positions.size() != graph.stage_slots.size()) break;
    std::uint32_t max = 0;
    for (const std::uint32_t slot : graph.stage_slots[s])
      max = std::max(max, iteration.memory[slot].weight_versions);
    CAPTURE(s);
    CHECK(max == subject.setup.weights[s].kept);
  }
}

std::int64_t computes(const OpGraph& graph) {
  return std::count_if(graph.activities.begin(), graph.activities.end(),
                       [](const Activity& activity) { return is_compute(activity.kind); });
}

void check_metrics(const Subject& subject, const MeasuredIteration& iteration) {
  const auto outcome = assess(subject.setup, subject.graph, iteration.trace);
  REQUIRE(outcome);
  const Metrics& metrics = outcome->metrics;
  for (const DeviceMetrics& device : metrics.devices) {
    CHECK(device.busy + device.idle == metrics.makespan);
    CHECK(device.idle_by_cause.sum() == device.idle);
    for (const IdleCause cause : kIdleCauses) CHECK(device.idle_by_cause.of(cause) >= Duration{});
  }
  CHECK(iteration.hand_over >= Duration{});
  CHECK(iteration.hand_overs == computes(subject.graph));
  CHECK(iteration.lost >= Duration{});
}

/// Runs it a few times; all laws on every iteration.
void check_laws(const Subject& subject, const Noise& synthetic = {}) {
  const RunRecord record = record_of(subject, synthetic, few(2));
  CHECK(record.iterations.size() == 2);
  for (const MeasuredIteration& iteration : record.iterations) {
    check_waits(subject.graph, iteration.trace);
    check_order(subject.graph, iteration.trace);
    if (synthetic.spread == 0) check_lengths(subject.graph, iteration.trace);
    check_books(subject, iteration);
    check_metrics(subject, iteration);
  }
}

TEST_CASE("in pairs a run holds both ops from the begin to the end of each, as predicted" *
          doctest::test_suite("measures")) {
  const Subject subject(
      parse_scenario(
          text_source("pairs.yaml",
                      "version: 1\nmodel: {uniform: {layers: 2, forward: 200 us, backward: 400 us, "
                      "activation: 10 MB}}\ncluster: {devices: 2}\n"
                      "schedule: {name: 1f1b, micro_batches: 3, pairs: overlapped}\n"),
          {}),
      true);
  for (const MeasuredIteration& iteration : record_of(subject, {}, few(2)).iterations) {
    CHECK(iteration.memory[0].peak_in_flight == 3);
    CHECK(iteration.memory[0].peak.sum() == Bytes{30'000'000});
    CHECK(iteration.memory[1].peak_in_flight == 2);
  }
}

TEST_CASE("every law holds on real runs of every schedule, overlapped and blocking" *
          doctest::test_suite("measures")) {
  for (const ScheduleRule& rule : window_rules()) {
    const std::string schedule(rule.name);
    CAPTURE(schedule);
    for (const std::string link : {"{}", "{latency: 40 us, bandwidth: 2 GB/s}"}) {
      CAPTURE(link);
      for (const std::string more :
           {", micro_batches: 4", ", micro_batches: 4, transfers: blocking",
            ", micro_batches: 4, mini_batches: 2, recompute: full",
            ", micro_batches: 2, transfers: blocking, recompute: full",
            ", micro_batches: 4, recompute: layers",
            ", micro_batches: 4, recompute: full, recompute_early: true"}) {
        if (rule.asynchronous && more.find("early") != std::string::npos) continue;
        CAPTURE(more);
        const std::string cluster = "devices: 3, link: " + link;
        check_laws(subject_of(uneven(schedule, cluster, rule.whole_model ? "" : "stages: 3",
                                     rule.whole_model ? more + ", bucket: 2 MiB" : more)));
      }
    }
  }
}

TEST_CASE("a gap before a part of an op is a hand-over like one before an op" *
          doctest::test_suite("measures")) {
  const Subject subject = subject_of(
      uneven("data-parallel", "devices: 2, link: {}", "", ", micro_batches: 3, bucket: 1 MiB"));
  const OpGraph& graph = subject.graph;
  MeasuredIteration iteration;
  iteration.trace = simulate(graph);
  count_hand_over(graph, iteration);
  CHECK(iteration.hand_over == Duration{});
  CHECK(iteration.hand_overs == computes(graph));
  // Each of the first device begins 5 us behind the one before it.
  const std::vector<std::uint32_t> nodes = nodes_by_slot(graph).front();
  CHECK(nodes.size() > 7);  // an F and a B of each micro-batch, one update, and the parts
  Duration later{};
  for (const std::uint32_t node : nodes) {
    later += std::chrono::microseconds(5);
    iteration.trace.spans[node].begin += later;
    iteration.trace.spans[node].end += later;
  }
  count_hand_over(graph, iteration);
  CHECK(iteration.hand_over == static_cast<int>(nodes.size()) * std::chrono::microseconds(5));
}

TEST_CASE("every law holds on real runs of micro-batches of unlike length" *
          doctest::test_suite("measures")) {
  for (const std::string schedule : {"1f1b", "gpipe", "zb-h1"}) {
    CAPTURE(schedule);
    for (const std::string more : {"", ", recompute: full", ", transfers: blocking"}) {
      CAPTURE(more);
      check_laws(subject_of(
          "version: 1\nmodel: {uniform: {layers: 4, forward: 90 us, backward_input: 80 us, "
          "backward_weight: 100 us, output: 64 KiB, activation: 512 KiB, parameters: 1 MiB}}\n"
          "cluster: {devices: 4, link: {latency: 20 us, bandwidth: 2 GB/s}}\n"
          "plan: {stages: 2, data_parallel: 2}\nschedule: {name: " +
          schedule + ", micro_batches: 4" + more +
          "}\ntraining: {micro_batch_lengths: [1, 0.5, 2, 1.5, 2, 2, 1, 0.5]}\n"));
    }
  }
}

TEST_CASE("every law holds on real runs of schedules with chunks and split backwards" *
          doctest::test_suite("measures")) {
  for (const ScheduleRule& rule : chunk_rules()) {
    const std::string schedule(rule.name);
    CAPTURE(schedule);
    const std::string devices = rule.chunks->even_devices ? "4" : "3";
    const std::string twice = rule.chunks->even_devices ? "8" : "6";
    for (const char* const more : {"", ", transfers: blocking",
                                   ", mini_batches: 2, recompute: full", ", recompute: layers"}) {
      CAPTURE(more);
      const std::string chunks = rule.chunks->max_chunks > 2 ? ", chunks: 3" : "";
      check_laws(subject_of(
          "version: 1\nmodel: {uniform: {layers: 9, forward: 90 us, backward_input: 80 us, "
          "backward_weight: 100 us, update: 10 us, output: 64 KiB, activation: 512 KiB, "
          "parameters: "
          "1 MiB}}\ncluster: {devices: " +
          devices + ", link: {latency: 20 us, bandwidth: 2 GB/s}}\nschedule: {name: " + schedule +
          chunks + ", micro_batches: " + twice + more + "}\ntraining: {optimizer_state: 2}\n"));
    }
  }
}

TEST_CASE("every law holds on real runs with replicas and copies" *
          doctest::test_suite("measures")) {
  const std::string link = ", link: {latency: 20 us, bandwidth: 4 GB/s}";
  for (const std::string more : {", micro_batches: 4", ", micro_batches: 4, transfers: blocking"}) {
    CAPTURE(more);
    for (const std::string schedule :
         {"gpipe", "1f1b", "eager-1f1b", "naive", "delayed-backward"}) {
      CAPTURE(schedule);
      check_laws(subject_of(
          uneven(schedule, "devices: 5" + link, "stages: 3, replicas: [2, 1, 2]", more)));
      check_laws(
          subject_of(uneven(schedule, "devices: 6" + link, "stages: 3, data_parallel: 2", more)));
      check_laws(subject_of(uneven(schedule, "devices: 5" + link, "stages: 3, replicas: [2, 1, 2]",
                                   more, ", zero_stage: 1")));
      check_laws(subject_of(uneven(schedule, "devices: 6" + link, "stages: 3, data_parallel: 2",
                                   more, ", gradients: 2")));
    }
    check_laws(subject_of(
        uneven("pipedream", "devices: 5" + link, "stages: 3, replicas: [2, 1, 2]", more)));
  }
}

TEST_CASE("every law holds on real runs of groups that hold parameters alike" *
          doctest::test_suite("measures")) {
  for (const std::string plan : {"{stages: 2}", "{stages: 2, data_parallel: 2}"}) {
    CAPTURE(plan);
    check_laws(subject_of(
        "version: 1\nmodel: {uniform: {layers: 4, forward: 1 ms, backward: 1 ms, update: 1 ms, "
        "parameters: 4 kB, replicated: 3 kB}, group: {devices: 3}}\ncluster: {devices: 4}\nplan: " +
        plan +
        "\nschedule: {name: 1f1b, micro_batches: 4}\n"
        "training: {optimizer_state: 2, zero_stage: 1}\n"));
  }
}

TEST_CASE("every law holds on real runs of the examples" * doctest::test_suite("measures")) {
  for (const std::string file :
       {"zero-bubble", "two-servers", "blocking-transfers", "recompute", "data-parallel",
        "interleaved", "shared-device", "branching", "delayed-backward", "slow-link",
        "uneven-stages", "four-stages", "naive-two-devices"}) {
    CAPTURE(file);
    check_laws(example(file));
  }
  check_laws(example("zero-bubble", {"schedule.transfers=blocking"}));
  check_laws(example("zero-bubble", {"schedule.file=examples/orders/zb-h2.csv"}));
  check_laws(example("two-servers", {"plan.stages=4", "plan.data_parallel=2",
                                     "plan.devices=", "schedule.micro_batches=4"}));
}

TEST_CASE("every law holds on real runs whose ops take random times" *
          doctest::test_suite("measures")) {
  Noise synthetic;
  synthetic.spread = 0.3;
  synthetic.stragglers.probability = 0.1;
  for (const std::string schedule : {"gpipe", "1f1b", "pipedream"}) {
    CAPTURE(schedule);
    check_laws(subject_of(uneven(schedule, "devices: 3, link: {latency: 20 us}", "stages: 3",
                                 ", micro_batches: 4")),
               synthetic);
  }
}

TEST_CASE("the ledgers keep as many versions of the weights as order alone says" *
          doctest::test_suite("measures")) {
  for (const std::string weights : {"stash", "vertical-sync", "none", "two"}) {
    CAPTURE(weights);
    for (const std::string plan :
         {"stages: 3", "stages: 3, replicas: [2, 1, 1]", "stages: 3, replicas: [1, 2, 1]",
          "stages: 3, replicas: [2, 2, 2]", "stages: 3, replicas: [3, 2, 1]"}) {
      CAPTURE(plan);
      for (const int lag : {0, 1}) {
        if (lag != 1 && plan == "stages: 3") continue;
        CAPTURE(lag);
        const std::string text =
            uneven("pipedream", "devices: 6, link: {latency: 20 us}", plan,
                   fmt::format(", micro_batches: 6, weights: {}{}", weights,
                               plan == "stages: 3" ? "" : fmt::format(", update_lag: {}", lag)));
        const Subject subject = subject_of(text);
        const RunRecord record = record_of(subject, {}, few(1));
        check_books(subject, record.iterations.front());
        // Nothing but the number of micro-batches that a replica sees may make it keep less.
        for (std::uint32_t s = 0; s < subject.graph.stage_slots.size(); ++s) {
          for (const std::uint32_t slot : subject.graph.stage_slots[s]) {
            const std::uint32_t kept = record.iterations.front().memory[slot].weight_versions;
            if (kept != subject.setup.weights[s].kept)
              MESSAGE(fmt::format("{}, {}, lag {}: stage {}, slot {} keeps {} of {} versions",
                                  weights, plan, lag, s, slot, kept,
                                  subject.setup.weights[s].kept));
          }
        }
      }
    }
  }
}

TEST_CASE("a graph with one device runs" * doctest::test_suite("measures")) {
  const Subject subject = subject_of(
      "version: 1\nmodel:\n  uniform: {layers: 2, forward: 100 us, backward: 200 us, update: 10 "
      "us, "
      "output: 1 KiB, activation: 1 KiB, parameters: 1 KiB}\ncluster: {devices: 1}\n"
      "plan: {stages: 1}\nschedule: {name: 1f1b, micro_batches: 3}\n");
  check_laws(subject);
}

}  // namespace
}  // namespace plumbline::test
