// Sharded gradients and weights (ZeRO-2 and 3, FSDP): closed forms, memory, who may not.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "sim/engine/memory.h"
#include "sim/planning/planning.h"
#include "sim/planning/predict.h"
#include "tests/support/builders.h"
#include "tests/support/close_to.h"
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

TEST_CASE("where links keep pace only first gathers and the last reduction show") {
  for (const int devices : {2, 5}) {
    for (const int layers : {2, 3, 8}) {
      for (const int m : {1, 2, 4}) {
        CAPTURE(devices);
        CAPTURE(layers);
        CAPTURE(m);
        // Each device sends (r-1)/r of 10 MB: 1 ms for two devices at 5 GB/s, 0.8 ms for five at
        // 10. A reduction and a gather are no longer than a forward.
        const std::string bandwidth = devices == 2 ? "5 GB/s" : "10 GB/s";
        const Duration half = microseconds(devices == 2 ? 1000 : 800);
        const Duration update = microseconds(1000 * layers / devices);
        const Outcome shared = predicted(data_parallel(devices, layers, m, 3, bandwidth));
        CHECK(shared.metrics.makespan == m * layers * milliseconds(6) + (m + 1) * half + update);
        // A forward begins with the layer that the backward before it has just freed. A backward
        // begins with the layer that the forward ended with: that is whole already.
        const int gathers = m * (2 * layers - 1);
        CHECK(shared.metrics.all_reduces == gathers + m * layers);
        CHECK(shared.metrics.all_reduce_bytes ==
              share_volume({10'000'000}, devices) *
                  (std::int64_t{devices} * (gathers + m * layers)));
        for (const DeviceMetrics& device : shared.metrics.devices) {
          CHECK(device.idle_by_cause.all_reduce == (m + 1) * half);
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

TEST_CASE("what an op holds that is cut it holds from its first part on") {
  std::string text = data_parallel(2, 2, 1, 3, "5 GB/s");
  text.replace(text.find("parameters"), 0, "activation: 10 MB, ");
  const Outcome outcome = predicted(text);
  const auto steps =
      memory_steps(outcome.graph, outcome.trace, outcome.setup.costs,
                   outcome.setup.schedule.shape.positions, memory_rules(outcome.setup));
  std::optional<SimTime> begin;
  for (std::uint32_t node = 0; node < outcome.graph.size() && !begin; ++node) {
    if (outcome.graph.activities[node].kind == ActivityKind::forward_part &&
        outcome.graph.nodes[node].resource == 0)
      begin = outcome.trace.spans[node].begin;
  }
  REQUIRE(begin);
  REQUIRE(!steps[0].empty());
  CHECK(steps[0].front().at == *begin);
  CHECK(steps[0].front().activations == Bytes{20'000'000});
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
    // Under 1F1B a forward begins with the weights that the backward before it has just freed.
    const int again = schedule.find("1f1b") != std::string::npos ? 2 : 0;
    CHECK(weights.metrics.makespan <= plain + microseconds((3 + again) * 250 + 2));
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

/// Where the devices of a group are, and those of its copies.
enum class Spread {
  one_server,  ///< All in one.
  copies,      ///< Each copy in another one.
  all,         ///< Each device in another one.
};

/// Four devices with all of the model each: so many copies, each of a group of 4 / copies.
Outcome in_groups(int copies, Spread spread, const std::string& bucket, const std::string& training,
                  const std::string& bandwidth = "1 GB/s") {
  const std::string layer = std::string(", flops: 1 GFLOP, parameters: 4 MB") +
                            (copies == 4 ? "}\n" : ", replicated: 4 MB}\n");
  const TemporaryFolder folder;
  const std::string profile = folder.file(
      "p.yaml", fmt::format("version: 1\nkind: profile\ngroup: {{devices: {}{}}}\nlayers:\n"
                            "  - {{name: a{}  - {{name: b{}  - {{name: c{}",
                            4 / copies, spread == Spread::all ? ", devices_per_server: 1" : "",
                            layer, layer, layer));
  const std::string levels =
      spread == Spread::one_server
          ? fmt::format("devices: {}, link: {{bandwidth: {}}}", copies, bandwidth)
          : fmt::format("levels: [{{size: 1}}, {{size: {}, bandwidth: {}}}]", copies, bandwidth);
  return predicted(fmt::format(
      "version: 1\nmodel: {{profile: {}}}\ncluster: {{{}, device: {{peak: 1 TFLOP/s, "
      "memory_bandwidth: 10 GB/s, link: 1 GB/s, network: 1 GB/s}}}}\nplan: {{stages: 1, "
      "data_parallel: {}}}\nschedule: {{name: 1f1b, micro_batches: 3, bucket: {}}}\n"
      "training: {{{}}}\n",
      profile, levels, copies, bucket, training));
}

void check_group(int groups, Spread spread, const std::string& bucket, int zero_stage,
                 const std::string& rest) {
  CAPTURE(groups);
  CAPTURE(static_cast<int>(spread));
  CAPTURE(bucket);
  const std::string training = fmt::format("zero_stage: {}{}", zero_stage, rest);
  CAPTURE(training);
  const Outcome copies = in_groups(4, spread, bucket, training);
  const Outcome group = in_groups(groups, spread, bucket, training);
  CHECK(group.memory[0].peak.weights == copies.memory[0].peak.weights);
  CHECK(group.memory[0].peak.gradients == copies.memory[0].peak.gradients);
  CHECK(group.memory[0].peak.sum() == copies.memory[0].peak.sum());
  CHECK(group.setup.notes == copies.setup.notes);
  // Each device sends what it would send around one ring of all four.
  if (zero_stage == 3)
    CHECK(group.metrics.all_reduce_bytes * (4 / groups) == copies.metrics.all_reduce_bytes);
  // 1/2 of a bucket in the group and 1/2 of the half over the copies, 3/4 in all; on links of their
  // own both go at once.
  if (groups == 1 || spread != Spread::copies) {
    CHECK(group.metrics.makespan == copies.metrics.makespan);
  } else if (zero_stage == 3) {
    const Outcome wider = in_groups(4, spread, bucket, training, "1.5 GB/s");
    CHECK(group.iteration_time_s == close_to(wider.iteration_time_s, 1e-6));
  } else {
    CHECK(group.metrics.makespan <= copies.metrics.makespan);
    CHECK(group.metrics.makespan >= copies.metrics.makespan * 2 / 3);
  }
}

TEST_CASE("a group that holds all of a model shares as so many copies of it do") {
  for (const std::string rest : {"", ", gradients: 2", ", gradients: 2, gather: with-forward",
                                 ", optimizer_state: 6, gradients: 2"}) {
    for (const int zero_stage : {2, 3}) {
      if (zero_stage == 3 && rest.find("gather") != std::string::npos) continue;
      for (const std::string bucket : {"1 B", "8 MB", "1 GB"}) {
        for (const int groups : {1, 2}) {
          for (const Spread spread : {Spread::one_server, Spread::copies, Spread::all})
            check_group(groups, spread, bucket, zero_stage, rest);
        }
      }
    }
  }
}

TEST_CASE("without copies a group shares what it holds alike, and only that is whole besides") {
  constexpr std::int64_t mb = 1'000'000;
  for (const int zero_stage : {2, 3}) {
    CAPTURE(zero_stage);
    const TemporaryFolder folder;
    const std::string profile = folder.file(
        "p.yaml",
        "version: 1\nkind: profile\ngroup: {devices: 2}\nlayers:\n"
        "  - {name: a, flops: 1 GFLOP, parameters: 40 MB, replicated: 4 MB}\n"
        "  - {name: b, forward: 1 ms, backward: 2 ms, update: 0 ms, parameters: 40 MB}\n"
        "  - {name: c, flops: 1 GFLOP, parameters: 40 MB, replicated: 4 MB}\n");
    const Outcome outcome = predicted(fmt::format(
        "version: 1\nmodel: {{profile: {}}}\ncluster: {{devices: 1, device: {{peak: 1 TFLOP/s, "
        "memory_bandwidth: 10 TB/s, link: 10 GB/s}}}}\nplan: {{stages: 1}}\nschedule: {{name: "
        "1f1b, micro_batches: 2, bucket: 1 B}}\ntraining: {{zero_stage: {}}}\n",
        profile, zero_stage));
    const MemoryParts& peak = outcome.memory[0].peak;
    CHECK(peak.gradients == Bytes{(2 * (36 + 2) + 40 + 2 * 4) * mb});
    CHECK(peak.weights == (zero_stage == 3 ? peak.gradients : Bytes{120 * mb}));
    // The weights of c, and those of a with b: each device sends 2 MB. The weights of c, with which
    // a forward ends and its backward begins, are gathered once, the others twice.
    const int moved = 2 * (2 + (zero_stage == 3 ? 3 : 0));
    CHECK(outcome.metrics.all_reduces == moved);
    CHECK(outcome.metrics.all_reduce_bytes == Bytes{2 * mb} * moved);
  }
}

TEST_CASE("one ring goes over the cards of all members of a group in a server") {
  // Eight devices in servers of two, a card of 1 GB/s each: 7/8 of 40 MB over two cards, whichever
  // of them are a group.
  const auto gather = [](int group, int copies) {
    const TemporaryFolder folder;
    const std::string profile = folder.file(
        "p.yaml", fmt::format("version: 1\nkind: profile\ngroup: {{devices: {}, "
                              "devices_per_server: 2}}\nlayers:\n  - {{name: a, flops: 1 FLOP, "
                              "parameters: 40 MB, replicated: 40 MB}}\n",
                              group));
    return predicted(fmt::format(
        "version: 1\nmodel: {{profile: {}}}\ncluster: {{levels: [{{size: 1}}, {{size: {}, "
        "bandwidth: 1 GB/s}}], device: {{peak: 1 TFLOP/s, "
        "memory_bandwidth: 1 TB/s, link: 1 TB/s, network: 1 GB/s}}}}\nplan: {{stages: 1, "
        "data_parallel: {}}}\nschedule: {{name: 1f1b, micro_batches: 1}}\n"
        "training: {{zero_stage: 3}}\n",
        profile, copies, copies));
  };
  for (const int group : {4, 8}) {
    CAPTURE(group);
    const Outcome outcome = gather(group, 8 / group);
    // The weights and the gradients; the backward comes right behind the forward.
    CHECK(outcome.iteration_time_s == close_to(2 * 17.5e-3, 0.01));
  }
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
  CHECK(predicted(pipeline("name: 1f1b, micro_batches: 4", 3, "stages: 4")).setup.notes.back() ==
        "training.zero_stage is 3, but each stage is on one device: nothing is shared");
  const TemporaryFolder folder;
  const std::string timed = folder.file(
      "p.yaml",
      "version: 1\nkind: profile\ngroup: {devices: 2}\nlayers:\n"
      "  - {name: a, forward: 1 ms, backward: 2 ms, parameters: 4 MB, replicated: 4 MB}\n");
  CHECK(predicted("version: 1\nmodel: {profile: " + timed +
                  "}\ncluster: {devices: 1}\nplan: {stages: 1}\nschedule: {name: 1f1b, "
                  "micro_batches: 4}\ntraining: {zero_stage: 3}\n")
            .setup.notes.back() ==
        "training.zero_stage is 3, but layers that give their times or updates share no more than "
        "the optimizer within their group, and there are no copies");
}

/// A run with all of its copies and as the first one tells it, which take as long and hold as much.
std::pair<Outcome, Outcome> all_and_one(const std::string& text) {
  const auto scenario = parse_scenario(text_source("s.yaml", text), {});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  auto all = predict(*scenario, Evaluation::events);
  auto one = predict(*scenario, Evaluation::fastest);
  REQUIRE(all);
  REQUIRE(one);
  CHECK(all->trace == longest_path(all->graph));
  CHECK(one->metrics.makespan == all->metrics.makespan);
  CHECK(one->memory[0].peak.sum() == all->memory[0].peak.sum());
  return {*std::move(all), *std::move(one)};
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
    const auto [all, one] = all_and_one(text);
    CHECK(one.graph.copies_represented == static_cast<std::uint32_t>(copies));
    for (std::size_t slot = 0; slot < all.metrics.devices.size(); ++slot) {
      CHECK(all.metrics.devices[slot].idle_by_cause.sum() == all.metrics.devices[slot].idle);
      CHECK(all.metrics.devices[slot].busy == all.metrics.devices[0].busy);
      if (devices > 1) break;  // stages differ
    }
  }
}

TEST_CASE("one copy tells what all of them do where groups share, too") {
  Dice dice(11);
  std::uint64_t together = 0;
  for (std::uint64_t trial = 0; trial < trials(80); ++trial) {
    const std::int64_t group = dice.roll(2, 4);
    std::string layers;
    for (int i = 0; i < 6; ++i) {
      const std::int64_t replicated = dice.roll(0, 9000);
      layers += fmt::format(
          "  - {{name: l{}, flops: {} MFLOP, output: {} KiB, activation: {} KiB, parameters: {} "
          "KiB, replicated: {} KiB}}\n",
          i, dice.roll(1, 900), dice.roll(0, 90), dice.roll(1, 9000),
          replicated + dice.roll(0, 1) * dice.roll(0, 9000), replicated);
    }
    const TemporaryFolder folder;
    const std::string profile = folder.file(
        "p.yaml",
        fmt::format("version: 1\nkind: profile\ngroup: {{devices: {}{}}}\n"
                    "layers:\n{}",
                    group, dice.roll(0, 2) == 0 ? ", devices_per_server: 1" : "", layers));
    const std::int64_t stages = dice.roll(1, 2);
    const std::int64_t copies = dice.roll(2, 6);
    const std::int64_t in_server = dice.roll(1, 4);
    const std::string text = fmt::format(
        "version: 1\nmodel: {{profile: {}}}\ncluster: {{levels: [{{size: {}, bandwidth: {} MB/s, "
        "latency: {} us}}, {{size: {}, bandwidth: {} MB/s, latency: {} us, cards: each}}], device: "
        "{{peak: 1 "
        "TFLOP/s, memory_bandwidth: 100 GB/s, link: {} MB/s, network: {} MB/s}}}}\n"
        "plan: {{stages: {}, data_parallel: {}}}\nschedule: {{name: 1f1b, micro_batches: {}, "
        "bucket: {} KiB}}\ntraining: {{optimizer_state: 2, zero_stage: {}, gather: {}}}\n",
        profile, in_server, dice.roll(9'000, 90'000), dice.roll(0, 5),
        (stages * copies + in_server - 1) / in_server, dice.roll(500, 9'000), dice.roll(5, 20),
        dice.roll(500, 90'000), dice.roll(500, 9'000), stages, copies, dice.roll(1, 3),
        dice.roll(1, 9000), dice.roll(2, 3),
        dice.roll(0, 1) == 0 ? "behind-update" : "with-forward");
    CAPTURE(text);
    const auto [all, one] = all_and_one(text);
    together += one.graph.copies_represented > 1 ? 1 : 0;
  }
  CHECK(together > trials(80) / 4);
}

}  // namespace
}  // namespace plumbline::test
