// Sharded gradients and weights (ZeRO-2 and 3, FSDP): closed forms, memory, who may not.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "sim/planning.h"
#include "sim/predict.h"
#include "tests/support/builders.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

Result<Outcome> predict_text(const std::string& text) {
  CAPTURE(text);
  const auto scenario = parse_scenario(text_source("s.yaml", text), {});
  if (!scenario) return scenario.problems();
  auto outcome = predict(*scenario);
  if (outcome && !outcome->graph.rates_change())
    CHECK(outcome->trace == longest_path(outcome->graph));
  return outcome;
}

Outcome predicted(const std::string& text) {
  auto outcome = predict_text(text);
  REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
  return *std::move(outcome);
}

/// Layers of 2 ms + 4 ms and 10 MB, all on each of so many devices; a bucket is a layer.
std::string data_parallel(int devices, int layers, int micro_batches, int zero_stage,
                          const std::string& bandwidth, const std::string& more = "") {
  return fmt::format(
      "version: 1\nmodel: {{uniform: {{layers: {}, forward: 2 ms, backward: 4 ms, update: 1 ms, "
      "parameters: 10 MB}}}}\ncluster: {{devices: {}, memory: 1 GB, link: {{bandwidth: {}}}}}\n"
      "schedule: {{name: data-parallel, micro_batches: {}, bucket: 10 MB}}\n"
      "training: {{optimizer_state: 6, zero_stage: {}{}}}\n",
      layers, devices, bandwidth, micro_batches, zero_stage, more);
}

TEST_CASE("where links keep pace only the first gather and the last reduction show") {
  for (const int devices : {2, 5}) {
    for (const int layers : {2, 3, 8}) {
      for (const int m : {1, 2, 4}) {
        CAPTURE(devices);
        CAPTURE(layers);
        CAPTURE(m);
        // Of 10 MB each sends (r-1)/r: 1 ms for two devices at 5 GB/s, 0.8 ms for five at 10. A
        // reduction and a gather are no longer than a forward.
        const std::string bandwidth = devices == 2 ? "5 GB/s" : "10 GB/s";
        const Duration half = microseconds(devices == 2 ? 1000 : 800);
        const Duration update = microseconds(1000 * layers / devices);
        const Outcome shared = predicted(data_parallel(devices, layers, m, 3, bandwidth));
        CHECK(shared.metrics.makespan == m * layers * milliseconds(6) + 2 * half + update);
        // A backward begins with the layer that the forward ended with: that is whole already.
        const int gathers = m * (2 * layers - 1);
        CHECK(shared.metrics.all_reduces == gathers + m * layers);
        CHECK(shared.metrics.all_reduce_bytes ==
              share_volume({10'000'000}, devices) *
                  (std::int64_t{devices} * (gathers + m * layers)));
        for (const DeviceMetrics& device : shared.metrics.devices) {
          CHECK(device.idle_by_cause.all_reduce == 2 * half);
          CHECK(device.idle_by_cause.fill == Duration{});
        }
        // Gradients alone: what the last backward reduces beside itself is no other than ZeRO-1's.
        const Outcome gradients = predicted(data_parallel(devices, layers, m, 2, bandwidth));
        CHECK(gradients.metrics.makespan ==
              predicted(data_parallel(devices, layers, m, 1, bandwidth)).metrics.makespan);
        CHECK(gradients.metrics.all_reduces == m * layers + 1);
      }
    }
  }
}

TEST_CASE("where links are slower than compute they decide") {
  // Two layers, one micro-batch, gathers and reductions of 10 ms each. F of a: 10..12; b's weights
  // were asked for with a's and come at 20: F 20..22, B 22..26. a's come from 22 on, when F of b
  // ends... its gather begins when B of b begins, 22..32, then b's gradients, 32..42; B of
  // a 32..36, its gradients 42..52.
  const Outcome slow = predicted(data_parallel(2, 2, 1, 3, "500 MB/s"));
  CHECK(slow.metrics.makespan == milliseconds(52 + 1));
}

TEST_CASE("the gradients of no more than two buckets are whole") {
  // Eight layers, reductions of 10 ms, backwards of 4: each begins when the one but one before has
  // been reduced. The first ends at 16 + 4; reductions follow each other from there.
  const Outcome outcome =
      predicted(data_parallel(2, 8, 1, 2, "500 MB/s", ", gather: with-forward"));
  std::vector<SimTime> begins, reduced;
  for (std::uint32_t node = 0; node < outcome.graph.size(); ++node) {
    const Activity& activity = outcome.graph.activities[node];
    const Span& span = outcome.trace.spans[node];
    if (outcome.graph.nodes[node].resource == 0 && op_of(activity.kind) == ActivityKind::backward)
      begins.push_back(span.begin);
    if (activity.kind == ActivityKind::reduce_scatter && outcome.graph.sender(node) == 0)
      reduced.push_back(span.end);
  }
  REQUIRE(begins.size() == 8);
  REQUIRE(reduced.size() == 8);
  for (std::size_t i = 2; i < 8; ++i) {
    CAPTURE(i);
    CHECK(begins[i] == reduced[i - 2]);
    CHECK(reduced[i] == reduced[i - 1] + milliseconds(10));
  }
}

TEST_CASE("each device holds its shares, and two buckets whole") {
  const auto peak = [](int zero_stage) {
    return predicted(data_parallel(4, 8, 2, zero_stage, "5 GB/s")).memory[0].peak;
  };
  constexpr std::int64_t mb = 1'000'000;
  CHECK(peak(1).weights == Bytes{80 * mb});
  CHECK(peak(1).gradients == Bytes{80 * mb});
  CHECK(peak(1).optimizer == Bytes{120 * mb});
  CHECK(peak(2).weights == Bytes{80 * mb});
  CHECK(peak(2).gradients == Bytes{(20 + 20) * mb});
  CHECK(peak(3).weights == Bytes{(20 + 20) * mb});
  CHECK(peak(3).gradients == Bytes{(20 + 20) * mb});
  CHECK(peak(3).optimizer == Bytes{120 * mb});
}

TEST_CASE("where one bucket is all there is, the next backward makes it while it is on its way") {
  const auto gradients = [](int micro_batches) {
    std::string text = data_parallel(4, 2, micro_batches, 2, "5 GB/s");
    text.replace(text.find("bucket: 10 MB"), 13, "bucket: 20 MB");
    return predicted(text).memory[0].peak.gradients;
  };
  CHECK(gradients(1) == Bytes{5'000'000 + 20'000'000});
  CHECK(gradients(2) == Bytes{5'000'000 + 2 * 20'000'000});
}

std::string pipeline(const std::string& schedule, int zero_stage, const std::string& plan) {
  return fmt::format(
      "version: 1\nmodel: {{uniform: {{layers: 8, forward: 1 ms, backward_input: 1 ms, "
      "backward_weight: 1 ms, parameters: 1 MB, output: 1 kB}}}}\n"
      "cluster: {{devices: 4, link: {{bandwidth: 2 GB/s}}}}\nplan: {{{}}}\n"
      "schedule: {{{}, bucket: 1 MB}}\ntraining: {{zero_stage: {}}}\n",
      plan, schedule, zero_stage);
}

TEST_CASE("stages of a pipeline share with the same stage of other copies") {
  for (const std::string schedule :
       {"name: gpipe, micro_batches: 4", "name: 1f1b, micro_batches: 4"}) {
    CAPTURE(schedule);
    const std::string plan = "stages: 2, data_parallel: 2";
    // (4 + 2 - 1) x 4 x 3 ms; a gather or reduction takes 1/4 ms. Transfers of 1 kB: 2 x 0.5 us.
    const Duration plain = milliseconds(60) + microseconds(1);
    const Outcome weights = predicted(pipeline(schedule, 3, plan));
    CHECK(weights.metrics.makespan >= plain + microseconds(2 * 250));
    // F of stage 0 ends where its B ends: what others wait for is hidden.
    CHECK(weights.metrics.makespan <= plain + microseconds(3 * 250 + 2));
    CHECK(weights.memory[0].peak.weights == Bytes{2'000'000 + 2'000'000});
    const Outcome gradients = predicted(pipeline(schedule, 2, plan));
    CHECK(gradients.metrics.makespan >= plain + microseconds(250));
  }
  // Split backwards reduce behind W.
  const Outcome split =
      predicted(pipeline("name: zb-h1, micro_batches: 4", 2, "stages: 2, data_parallel: 2"));
  const auto& activities = split.graph.activities;
  CHECK(std::count_if(activities.begin(), activities.end(), [](const Activity& activity) {
          return activity.kind == ActivityKind::weight_part;
        }) == 4 * 4 * 3);
}

TEST_CASE("who cannot share gradients or weights is told why") {
  const auto problem = [](const std::string& text) {
    const auto outcome = predict_text(text);
    REQUIRE_FALSE(outcome);
    return outcome.problems().front().message;
  };
  CHECK(problem(pipeline("name: gpipe, micro_batches: 4", 2, "stages: 2, replicas: [2, 2]")) ==
        "training.zero_stage is 2, but stage 0 has 2 replicas, which run different micro-batches");
  CHECK(problem(pipeline("name: zb-h1, micro_batches: 4", 3, "stages: 2, data_parallel: 2")) ==
        "training.zero_stage is 3, but the schedule splits backwards, and weights are gathered for "
        "whole ones only");
  CHECK(
      problem(pipeline("name: 1f1b, micro_batches: 4, recompute: full", 3,
                       "stages: 2, data_parallel: 2")) ==
      "training.zero_stage is 3 and schedule.recompute 'full', which needs all weights of a stage "
      "before the first of its backward");
  CHECK(problem(pipeline("name: pipedream, micro_batches: 4", 3, "stages: 2")) ==
        "training.zero_stage is 3, but the schedule 'pipedream' has no flush");
  const auto planned = parse_scenario(
      text_source("s.yaml", pipeline("name: 1f1b, micro_batches: 4", 3, "partition: pipedream")),
      {});
  REQUIRE(planned);
  const auto plan = plan_scenario(*planned, {});
  REQUIRE_FALSE(plan);
  CHECK(plan.problems().front().message ==
        "training.zero_stage is 3, and a planned partition may have replicas, which share no more "
        "than the optimizer");
  CHECK(predicted(pipeline("name: 1f1b, micro_batches: 4", 3, "stages: 4")).pipeline.notes.back() ==
        "training.zero_stage is 3, but each stage is on one device: nothing is shared");
}

TEST_CASE("one copy tells what all of them do, whatever they share") {
  Dice dice(3);
  for (std::uint64_t trial = 0; trial < trials(60); ++trial) {
    std::string layers;
    for (int i = 0; i < 9; ++i) {
      layers += fmt::format(
          "{}{{name: l{}, forward: {} us, backward: {} us, update: {} us, output: {} KiB, "
          "activation: {} KiB, parameters: {} KiB}}",
          i == 0 ? "" : ", ", i, dice.roll(1, 900), dice.roll(1, 900), dice.roll(0, 40),
          dice.roll(0, 90), dice.roll(1, 9000), dice.roll(0, 1) * dice.roll(0, 9000));
    }
    const std::int64_t devices = dice.roll(1, 3);
    const std::int64_t copies = dice.roll(2, 4);
    const bool chunks = dice.roll(0, 1) == 0;
    constexpr std::array recompute = {"none", "none", "layers"};
    const std::string text = fmt::format(
        "version: 1\nmodel: {{layers: [{}]}}\ncluster: {{devices: {}, memory: 1 GB, link: "
        "{{latency: {} us, "
        "bandwidth: {} MB/s}}}}\nplan: {{stages: {}, data_parallel: {}}}\nschedule: {{name: {}, "
        "micro_batches: {}, mini_batches: {}, recompute: {}, bucket: {} KiB}}\n"
        "training: {{optimizer_state: 2, zero_stage: {}, gather: {}}}\n",
        layers, devices * copies, dice.roll(0, 9), dice.roll(500, 90'000),
        devices * (chunks ? 2 : 1), copies, chunks ? "interleaved-1f1b" : "1f1b",
        devices * dice.roll(1, 3), dice.roll(1, 2),
        recompute[static_cast<std::size_t>(dice.roll(0, 2))], dice.roll(1, 9000), dice.roll(2, 3),
        dice.roll(0, 1) == 0 ? "behind-update" : "with-forward");
    CAPTURE(text);
    const auto scenario = parse_scenario(text_source("s.yaml", text), {});
    REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
    const auto all = predict(*scenario, Evaluation::events);
    const auto one = predict(*scenario, Evaluation::fastest);
    REQUIRE(all);
    REQUIRE(one);
    CHECK(all->trace == longest_path(all->graph));
    CHECK(one->graph.stands_for == static_cast<std::uint32_t>(copies));
    CHECK(one->metrics.makespan == all->metrics.makespan);
    CHECK(one->memory[0].peak.sum() == all->memory[0].peak.sum());
    for (std::size_t slot = 0; slot < all->metrics.devices.size(); ++slot) {
      CHECK(all->metrics.devices[slot].idle_by_cause.sum() == all->metrics.devices[slot].idle);
      CHECK(all->metrics.devices[slot].busy == all->metrics.devices[0].busy);
      if (devices > 1) break;  // stages differ
    }
  }
}

}  // namespace
}  // namespace plumbline::test
