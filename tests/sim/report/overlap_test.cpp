// Gradients that are reduced beside the last backward, weights gathered beside the first forward:
// closed forms, and what is never worse.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/planning/predict.h"
#include "sim/report/explain_report.h"
#include "sim/whatif/explain.h"
#include "tests/support/builders.h"
#include "tests/support/close_to.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

using std::chrono::milliseconds;

Outcome predicted(const std::string& text) {
  CAPTURE(text);
  const auto scenario = parse_scenario(text_source("s.yaml", text), {});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  auto outcome = predict(*scenario);
  REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
  if (!outcome->graph.rates_change()) CHECK(outcome->trace == longest_path(outcome->graph));
  return *std::move(outcome);
}

/// Two stages of two layers with 1 ms + 2 ms (I and W 1 ms each) and 1 MB of gradients, in two
/// copies whose rings take 1 ms for each MB.
std::string two_copies(const std::string& schedule, const std::string& training = "{}",
                       const std::string& update = "0 ms") {
  return "version: 1\nmodel: {uniform: {layers: 4, forward: 1 ms, backward_input: 1 ms, "
         "backward_weight: 1 ms, parameters: 1 MB, update: " +
         update +
         "}}\ncluster: {devices: 4, link: {bandwidth: 1 GB/s}}\n"
         "plan: {stages: 2, data_parallel: 2}\nschedule: {" +
         schedule + "}\ntraining: " + training + "\n";
}

Duration time_of(const std::string& text) { return predicted(text).metrics.makespan; }

TEST_CASE("under a pipeline too a bucket is reduced beside the backward of the layers before") {
  // Ops take 2 and 4 ms: (3 + 1) x 6 ms until stage 0 ends its backward, then the ring of 2 MB.
  CHECK(time_of(two_copies("name: gpipe, micro_batches: 3")) == milliseconds(24 + 2));
  // Its second layer's gradients leave 2 ms earlier: what is left is the other ring.
  const Outcome halves = predicted(two_copies("name: gpipe, micro_batches: 3, bucket: 1 MB"));
  CHECK(halves.metrics.makespan == milliseconds(24 + 1));
  CHECK(halves.metrics.all_reduces == 4);
  CHECK(halves.metrics.all_reduce_bytes == Bytes{8'000'000});
  CHECK(halves.metrics.operations == 4 * 3 * 2);
  for (const DeviceMetrics& device : halves.metrics.devices)
    CHECK(device.idle_by_cause.all_reduce == milliseconds(1));
  CHECK(time_of(two_copies("name: 1f1b, micro_batches: 3, bucket: 1 MB")) == milliseconds(25));
  // A bucket that holds the whole stage leaves nothing to overlap.
  CHECK(time_of(two_copies("name: 1f1b, micro_batches: 3, bucket: 2 MB")) == milliseconds(26));
  // A slower ring than backward: from the first bucket's end on they queue.
  CHECK(time_of(two_copies("name: 1f1b, micro_batches: 3, bucket: 1 MB", "{gradients: 3}")) ==
        milliseconds(22 + 3 + 3));
}

TEST_CASE("each part of an op is launched by itself") {
  // One copy's ops of 2 + 4 ms, 24 ms in all as above; 8 launches on the way, and that of the
  // update; in buckets the last backward of either stage has one more.
  const std::string launches = "overhead: {per_op: 0.1 ms}\n";
  const std::string whole = "name: gpipe, micro_batches: 3";
  CHECK(time_of(two_copies(whole) + launches) == std::chrono::microseconds(26'900));
  CHECK(time_of(two_copies(whole + ", bucket: 1 MB") + launches) ==
        std::chrono::microseconds(26'100));
  CHECK(time_of(two_copies(whole + ", bucket: 2 MB") + launches) ==
        std::chrono::microseconds(26'900));
}

TEST_CASE("where backwards are split a bucket waits for its W") {
  // One micro-batch: F 2, 2; I 2, 2 (stage 1 first), then W 2 on stage 0, from 8 to 10.
  CHECK(time_of(two_copies("name: zb-h1, micro_batches: 1")) == milliseconds(10 + 2));
  const Outcome halves = predicted(two_copies("name: zb-h1, micro_batches: 1, bucket: 1 MB"));
  CHECK(halves.metrics.makespan == milliseconds(10 + 1));
  const auto& activities = halves.graph.activities;
  CHECK(std::count_if(activities.begin(), activities.end(), [](const Activity& activity) {
          return activity.kind == ActivityKind::weight_part;
        }) == 4);
}

TEST_CASE("replicas that end with different micro-batches each cut their own last backward") {
  // Replica 0 has micro-batches 0, 2; replica 1 has 1, 3: both end after 2 x 12 ms.
  const std::string text =
      "version: 1\nmodel: {uniform: {layers: 4, forward: 1 ms, backward: 2 ms, parameters: 1 MB}}\n"
      "cluster: {devices: 2, link: {bandwidth: 1 GB/s}}\nplan: {stages: 1, replicas: [2]}\n"
      "schedule: {name: gpipe, micro_batches: 4, bucket: 1 MB}\n";
  const Outcome outcome = predicted(text);
  CHECK(outcome.metrics.makespan == milliseconds(24 + 1));
  std::vector<std::uint32_t> parts;
  for (const Activity& activity : outcome.graph.activities) {
    if (activity.kind == ActivityKind::backward_part) parts.push_back(activity.micro_batch.value);
  }
  CHECK(parts == std::vector<std::uint32_t>{2, 2, 2, 3, 3, 3});
}

TEST_CASE("slices of unequal work cut the one that makes the last gradients") {
  const auto text = [](const char* bucket) {
    return two_copies(fmt::format("name: gpipe, micro_batches: 1, slices: [1, 3]{}", bucket));
  };
  // Works 1/2 and 3/2 of half an op: stage 0's last backward is slice 0's, 4 ms x 1/4.
  const Duration whole = time_of(text(""));
  CHECK(whole - time_of(text(", bucket: 1 MB")) == std::chrono::microseconds(500));
}

TEST_CASE(
    "weights that are gathered as a mini-batch begins hide behind the forwards before theirs") {
  // Behind the update: a scatter of half of 2 MB, and a gather of as much.
  CHECK(time_of(two_copies("name: gpipe, micro_batches: 3", "{zero_stage: 1}", "1 ms")) ==
        milliseconds(24 + 1 + 1 + 1));
  // Ahead: stage 0 waits for its own 1 ms, stage 1's come meanwhile.
  const Outcome ahead = predicted(
      two_copies("name: gpipe, micro_batches: 3", "{zero_stage: 1, gather: with-forward}", "1 ms"));
  CHECK(ahead.metrics.makespan == milliseconds(1 + 24 + 1 + 1));
  CHECK(ahead.metrics.devices[0].idle_by_cause.all_reduce == milliseconds(1 + 1));
  CHECK(ahead.metrics.devices[0].idle_by_cause.fill == Duration{});
  CHECK(ahead.metrics.devices[2].idle_by_cause.fill == milliseconds(3));
  CHECK(ahead.metrics.devices[2].idle_by_cause.all_reduce == milliseconds(1));
  // In buckets only the first one's half shows, at either end.
  const std::string buckets = "name: gpipe, micro_batches: 3, bucket: 1 MB";
  CHECK(time_of(two_copies(buckets, "{zero_stage: 1}", "1 ms")) ==
        milliseconds(24 + 1 + 1) + std::chrono::microseconds(500));
  CHECK(time_of(two_copies(buckets, "{zero_stage: 1, gather: with-forward}", "1 ms")) ==
        milliseconds(24 + 1 + 1));
  // Every mini-batch is like the first.
  CHECK(time_of(two_copies(buckets + ", mini_batches: 3", "{zero_stage: 1, gather: with-forward}",
                           "1 ms")) == 3 * milliseconds(26));
}

TEST_CASE("a stage whose weights come later than its input waits for transfer, then for weights") {
  // Stage 1's gather takes 40 ms, its input 2 + 5 ms.
  const std::string text =
      "version: 1\nmodel: {layers: [{name: a, forward: 2 ms, backward: 2 ms, output: 5 MB}, "
      "{name: b, forward: 2 ms, backward: 2 ms, parameters: 80 MB}]}\n"
      "cluster: {devices: 4, link: {bandwidth: 1 GB/s}}\nplan: {stages: 2, data_parallel: 2}\n"
      "schedule: {name: gpipe, micro_batches: 1}\ntraining: {zero_stage: 1, gather: "
      "with-forward}\n";
  const Outcome outcome = predicted(text);
  const IdleByCause& idle = outcome.metrics.devices[2].idle_by_cause;
  CHECK(idle.fill == milliseconds(7));
  CHECK(idle.all_reduce == milliseconds(33 + 40 - 7));  // and behind its scatter, less the drain
}

TEST_CASE("what nothing gathers, or what never flushes, is told") {
  const auto notes = [](const std::string& schedule, const std::string& training) {
    return predicted(two_copies(schedule, training)).setup.notes;
  };
  CHECK(notes("name: gpipe, micro_batches: 3", "{gather: with-forward}").front() ==
        "training.gather is with-forward, but without training.zero_stage: 1 or 2 no weights are "
        "gathered");
  const Outcome stream = predicted(
      "version: 1\nmodel: {uniform: {layers: 2, forward: 1 ms, backward: 1 ms}}\n"
      "cluster: {devices: 2}\nschedule: {name: pipedream, micro_batches: 4, bucket: 1 MB}\n");
  CHECK(
      stream.setup.notes.front() ==
      "schedule.bucket does not apply to the schedule 'pipedream', which reduces the gradients of "
      "each round while later ops run");
}

TEST_CASE("an op in parts varies, and is told, as the whole") {
  const auto text = [](const char* bucket) {
    return fmt::format(
        "version: 1\nmodel: {{uniform: {{layers: 16, forward: 1 ms, backward: 2 ms, parameters: 1 "
        "MB}}}}\ncluster: {{devices: 4}}\nplan: {{stages: 1, data_parallel: 4}}\n"
        "schedule: {{name: 1f1b, micro_batches: 1{}}}\nnoise: {{spread: 0.2, samples: 40}}\n",
        bucket);
  };
  const Outcome whole = predicted(text(""));
  const Outcome parts = predicted(text(", bucket: 1 MB"));
  REQUIRE(whole.uncertainty);
  REQUIRE(parts.uncertainty);
  // The draws hang on the number of the node, so that the spreads are alike, not the runs.
  CHECK(parts.uncertainty->iteration_time_s(0.5) ==
        close_to(whole.uncertainty->iteration_time_s(0.5), 0.05));
  const auto width = [](const Outcome& outcome) {
    return outcome.uncertainty->iteration_time_s(0.95) /
           outcome.uncertainty->iteration_time_s(0.05);
  };
  CHECK(width(parts) > 1 + 0.6 * (width(whole) - 1));
  // The table counts ops: one B each, whose first part begins with it.
  const Explanation explanation = explain(parts);
  CHECK(explanation.stages[0].ops == 8);
  CHECK(explanation.stages[0].critical == 8);
  const auto node = find_op(parts.graph, "0B0");
  REQUIRE(node);
  const std::string told = op_table(parts, *node).print();
  CHECK(told.find("0B0 on device 0: 16 ms to 48 ms\n  it began when 0F0 had ended") !=
        std::string::npos);
}

TEST_CASE("overlap is never slower, sends as much, and never beats the compute") {
  Dice dice(11);
  std::uint64_t faster = 0;
  for (std::uint64_t trial = 0; trial < trials(300); ++trial) {
    std::string layers;
    for (int i = 0; i < 12; ++i) {
      layers += fmt::format(
          "{}{{name: l{}, forward: {} us, backward_input: {} us, backward_weight: {} us, "
          "output: {} KiB, parameters: {} KiB}}",
          i == 0 ? "" : ", ", i, dice.roll(1, 900), dice.roll(1, 900), dice.roll(0, 900),
          dice.roll(0, 90), dice.roll(0, 900));
    }
    constexpr std::array names = {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "looped-bfs"};
    const std::string name = names[static_cast<std::size_t>(dice.roll(0, 4))];
    const bool chunks = name == "interleaved-1f1b" || name == "looped-bfs";
    const std::int64_t devices = dice.roll(1, 3);
    const std::int64_t copies = dice.roll(2, 3);
    const std::string common = fmt::format(
        "version: 1\nmodel: {{layers: [{}]}}\ncluster: {{devices: {}, link: {{latency: {} us, "
        "bandwidth: {} MB/s}}}}\nplan: {{stages: {}, data_parallel: {}}}\n"
        "schedule: {{name: {}, micro_batches: {}, mini_batches: 3, recompute: {}",
        layers, devices * copies, dice.roll(0, 1) * dice.roll(0, 9), dice.roll(50, 9000),
        devices * (chunks ? 2 : 1), copies, name, devices * dice.roll(1, 3),
        dice.roll(0, 1) == 0 ? "none" : "full");
    const std::string bucket = fmt::format(", bucket: {} KiB", dice.roll(1, 900));
    const auto run = [&](const std::string& more, const std::string& training) {
      return predicted(fmt::format("{}{}}}\ntraining: {{{}}}\n", common, more, training));
    };
    const bool has_latency = common.find("latency: 0 us") == std::string::npos;
    for (const std::string sharded : {"zero_stage: 0", "zero_stage: 1"}) {
      CAPTURE(sharded);
      const Outcome apart = run("", sharded);
      const Outcome beside = run(bucket, sharded);
      // Rings round to bytes and nanoseconds, each bucket by itself; each has latencies of its own.
      const Duration rounding{3 * 12 * 4};
      if (!has_latency) CHECK(beside.metrics.makespan <= apart.metrics.makespan + rounding);
      CHECK(std::abs(beside.metrics.all_reduce_bytes.count -
                     apart.metrics.all_reduce_bytes.count) <= 3 * 2 * 12 * 9);
      for (std::size_t slot = 0; slot < apart.metrics.devices.size(); ++slot)
        CHECK(beside.metrics.devices[slot].busy == apart.metrics.devices[slot].busy);
      faster += beside.metrics.makespan < apart.metrics.makespan ? 1 : 0;
    }
    const Outcome behind = run(bucket, "zero_stage: 1");
    for (const std::string& more : {std::string(), bucket}) {
      const Outcome ahead = run(more, "zero_stage: 1, gather: with-forward");
      const Outcome before = more.empty() ? run("", "zero_stage: 1") : behind;
      const Duration rounding{3 * 12 * 4};
      if (!has_latency) CHECK(ahead.metrics.makespan <= before.metrics.makespan + rounding);
      faster += ahead.metrics.makespan < before.metrics.makespan ? 1 : 0;
      for (std::size_t slot = 0; slot < ahead.metrics.devices.size(); ++slot)
        CHECK(ahead.metrics.devices[slot].busy == before.metrics.devices[slot].busy);
    }
  }
  CHECK(faster > trials(300));
}

}  // namespace
}  // namespace plumbline::test
