// Recompute of cheap activations: times and memory against a model that never kept them.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/engine/stage_memory.h"
#include "sim/planning/planning.h"
#include "sim/planning/predict.h"
#include "tests/support/builders.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

using std::chrono::microseconds;

Outcome predicted(const std::string& text) {
  CAPTURE(text);
  const auto scenario = parse_scenario(text_source("selective.yaml", text), {});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  auto outcome = predict(*scenario);
  REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
  return *std::move(outcome);
}

std::string problem_of(const std::string& text) {
  const auto scenario = parse_scenario(text_source("selective.yaml", text), {});
  REQUIRE_FALSE(scenario);
  return scenario.problems().front().message;
}

TEST_CASE("what a layer says is made again for its backward, and for no longer") {
  // Two layers a stage; of 100 B of each 60 are made again, in 5 us.
  const auto run = [](const std::string& schedule) {
    return predicted(
        "version: 1\nmodel: {uniform: {layers: 4, forward: 10 us, backward_input: 20 us, "
        "backward_weight: 10 us, output: 10 B, activation: 100 B, selective: {activation: 60 B, "
        "forward: 5 us}}}\nplan: {stages: 2}\nschedule: {" +
        schedule + "}\n");
  };
  const Outcome plain = run("name: gpipe, micro_batches: 3");
  const Outcome some = run("name: gpipe, micro_batches: 3, recompute: selective");
  // The forwards and backwards of three micro-batches through both stages: (3 + 1) x (20 + 60) us.
  CHECK(plain.metrics.makespan == microseconds(320));
  CHECK(some.metrics.makespan == microseconds(4 * (20 + 60 + 10)));
  CHECK(plain.memory[0].peak.activations == Bytes{3 * 200});
  CHECK(some.memory[0].peak.activations == Bytes{3 * 80 + 60});
  CHECK(some.memory[0].peak_op == "0B0");
  // W needs what I made again, of both layers.
  const Outcome split = run("name: zb-h1, micro_batches: 3, recompute: selective");
  const Outcome split_plain = run("name: zb-h1, micro_batches: 3");
  const auto stages =
      stage_memory(split.setup.costs, split.setup.schedule.shape.positions, Recompute::selective);
  CHECK(stages[0].kept == Bytes{80});
  CHECK(stages[0].recomputed_by_input == Bytes{120});
  CHECK(stages[0].done_by_weight == Bytes{200});
  CHECK(split.metrics.makespan > split_plain.metrics.makespan);
  // Data-parallel rings leave bucket by bucket, each behind what it made again.
  const auto buckets = [](const std::string& recompute) {
    return predicted(
               "version: 1\nmodel: {uniform: {layers: 2, forward: 1 ms, backward: 2 ms, "
               "parameters: 500 MB, activation: 9 B, selective: {activation: 9 B, forward: 300 us}}"
               "}\ncluster: {devices: 2, link: {bandwidth: 10 GB/s}}\n"
               "schedule: {name: data-parallel, micro_batches: 1, bucket: 1 MB, recompute: " +
               recompute + "}\n")
        .metrics.makespan;
  };
  CHECK(buckets("none") == std::chrono::milliseconds(104));
  CHECK(buckets("selective") == microseconds(104'300));
}

/// The note on schedule.offload; "" without one.
std::string offload_note(const Outcome& outcome) {
  for (const std::string& note : outcome.setup.notes) {
    if (note.starts_with("schedule.offload: ")) return note;
  }
  return "";
}

TEST_CASE("a device holds the share that is offloaded in two layers alone") {
  // Two layers a stage of 100 B each; 40 B of them take 40 us.
  const auto run = [](const std::string& schedule) {
    return predicted(
        "version: 1\nmodel: {uniform: {layers: 4, forward: 10 us, backward_input: 50 us, "
        "backward_weight: 10 us, output: 10 B, activation: 100 B, selective: {activation: 60 B, "
        "forward: 5 us}}}\ncluster: {host_link: 1 MB/s}\nplan: {stages: 2}\nschedule: {name: "
        "gpipe, micro_batches: 3" +
        schedule + "}\n");
  };
  const Outcome all = run("");
  const Outcome some = run(", offload: 0.4");
  CHECK(all.metrics.makespan == microseconds(4 * (20 + 120)));
  CHECK(some.metrics.makespan == microseconds(4 * (80 + 120)));
  CHECK(all.memory[0].peak.activations == Bytes{3 * 200});
  CHECK(some.memory[0].peak.activations == Bytes{3 * 120});
  CHECK(all.memory[0].peak.temporary == Bytes{});
  CHECK(some.memory[0].peak.temporary == Bytes{2 * 40});
  CHECK(offload_note(some) ==
        "schedule.offload: 40 % of what 4 layers keep, over 1 MB/s; forwards that this makes "
        "longer: 4, by 120 us in all; backwards: none");
  // With selective recomputation, of the 40 B that it leaves.
  const Outcome both = run(", offload: 0.5, recompute: selective");
  CHECK(both.memory[0].peak.activations == Bytes{3 * 40 + 60});
  CHECK(both.metrics.makespan == microseconds(4 * (40 + 120 + 10)));

  const std::string model =
      "version: 1\nmodel: {uniform: {layers: 4, forward: 10 us, backward: 20 us, activation: 9 "
      "B}}\n";
  CHECK(problem_of(model + "schedule: {name: gpipe, micro_batches: 3, offload: 0.4}\n") ==
        "schedule.offload is 0.4, but the bandwidth of the devices' links to their hosts is not "
        "known");
  CHECK(problem_of(model +
                   "cluster: {host_link: 1 GB/s}\nschedule: {name: gpipe, micro_batches: 3, "
                   "offload: 1, recompute: layers}\n") ==
        "schedule.offload is 1, and schedule.recompute keeps inputs alone");
}

TEST_CASE("what offloading makes longer is told of the profile's micro-batches") {
  const auto note = [](int size) {
    const Outcome outcome = predicted(fmt::format(
        "version: 1\nmodel:\n  batch: 2\n  layers:\n    - {{name: a, forward: 10 us, backward: 20 "
        "us, output: 10 B, activation: 100 B}}\ncluster: {{host_link: 1 MB/s}}\nplan: {{stages: "
        "1}}\nschedule: {{name: gpipe, micro_batches: 3, offload: 0.5}}\ntraining: "
        "{{micro_batch_size: {}}}\n",
        size));
    return offload_note(outcome);
  };
  const std::string of_profile =
      "schedule.offload: 50 % of what 1 layers keep, over 1 MB/s; forwards that this makes longer: "
      "1, by 40 us in all; backwards: 1, by 30 us in all";
  CHECK(note(2) == of_profile);
  CHECK(note(4) == of_profile + " (for micro-batches of 2, as in the profile)");
}

/// A model with layers of all sizes, branches and links; each layer's line by `line`.
template <class Line>
std::string random_text(std::uint64_t seed, std::string_view recompute, Line&& line) {
  Dice dice(seed);
  std::string text = "version: 1\nmodel:\n  layers:\n";
  const std::int64_t layers = dice.roll(3, 7);
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::int64_t forward = dice.roll(1, 90);
    const std::int64_t backward = dice.roll(1, 90);
    const std::int64_t activation = dice.roll(0, 64);
    text += fmt::format("    - {{name: l{}, forward: {} us, output: {} KiB, {}}}\n", i, forward,
                        dice.roll(0, 64),
                        line(backward, activation, dice.roll(0, activation), dice.roll(0, 40),
                             dice.roll(0, 3) > 0));
  }
  const char* const schedules[] = {"gpipe", "1f1b", "eager-1f1b", "naive"};
  return text + fmt::format(
                    "cluster: {{devices: 3, link: {{bandwidth: {} GB/s}}}}\n"
                    "plan: {{stages: 3}}\nschedule: {{name: {}, micro_batches: {}, recompute: "
                    "{}}}\n",
                    dice.roll(1, 20), schedules[dice.roll(0, 3)], dice.roll(1, 7), recompute);
}

TEST_CASE("times are those of a model whose backwards are longer, memory is between two of them") {
  for (std::uint64_t seed = 1; seed <= trials(120); ++seed) {
    CAPTURE(seed);
    const Outcome some = predicted(random_text(
        seed, "selective",
        [](std::int64_t backward, std::int64_t activation, std::int64_t again, std::int64_t time,
           bool has) {
          std::string text =
              fmt::format("backward: {} us, activation: {} KiB", backward, activation);
          if (has)
            text += fmt::format(", selective: {{activation: {} KiB, forward: {} us}}", again, time);
          else if (activation == 0)
            text += ", selective: {activation: 0 B, forward: 0 us}";  // some layer says something
          return text;
        }));
    const auto without = [&](bool all) {
      return predicted(random_text(seed, "none",
                                   [&](std::int64_t backward, std::int64_t activation,
                                       std::int64_t again, std::int64_t time, bool has) {
                                     return fmt::format("backward: {} us, activation: {} KiB",
                                                        backward + (has ? time : 0),
                                                        activation - (has && !all ? again : 0));
                                   }));
    };
    const Outcome less = without(false);
    const Outcome all = without(true);
    CHECK(some.metrics.makespan == less.metrics.makespan);
    CHECK(some.metrics.makespan == all.metrics.makespan);
    for (std::size_t slot = 0; slot < some.memory.size(); ++slot) {
      CHECK(some.memory[slot].peak.sum() >= less.memory[slot].peak.sum());
      CHECK(some.memory[slot].peak.sum() <= all.memory[slot].peak.sum());
      const Bytes max =
          some.setup.costs
              .checkpoints(static_cast<std::uint32_t>(slot), static_cast<std::uint32_t>(slot))
              .again;
      CHECK(some.memory[slot].peak.sum() <= less.memory[slot].peak.sum() + max);
    }
  }
}

TEST_CASE("a balanced partition counts what is made again") {
  const auto first = [](const std::string& recompute) {
    const auto scenario = parse_scenario(
        text_source("balanced.yaml",
                    "version: 1\nmodel:\n  layers:\n"
                    "    - {name: a, forward: 10 us, backward: 20 us}\n"
                    "    - {name: b, forward: 10 us, backward: 20 us}\n"
                    "    - {name: c, forward: 10 us, backward: 20 us}\n"
                    "    - {name: d, forward: 10 us, backward: 20 us, activation: 1 B, selective: "
                    "{activation: 1 B, forward: 70 us}}\n"
                    "plan: {stages: 2, partition: balanced}\n"
                    "schedule: {name: 1f1b, micro_batches: 2, recompute: " +
                        recompute + "}\n"),
        {});
    REQUIRE(scenario);
    const auto outcome = predict(*scenario);
    REQUIRE(outcome);
    return outcome->setup.partition.stages[0].layers.size();
  };
  CHECK(first("none") == 2);
  CHECK(first("full") == 2);
  CHECK(first("selective") == 3);
}

TEST_CASE("the planner counts what is kept, and the time to make the rest") {
  const auto planned = [](const std::string& memory) -> std::string {
    const auto scenario = parse_scenario(
        text_source("selective.yaml",
                    "version: 1\nmodel: {uniform: {layers: 8, forward: 10 ms, backward: 20 ms, "
                    "output: 1 MB, activation: 1 GB, parameters: 1 MB, selective: {activation: 900 "
                    "MB, forward: 1 ms}}}\ncluster: {devices: 4, memory: " +
                        memory +
                        "}\nplan: {stages: 4, partition: pipedream}\n"
                        "schedule: {name: 1f1b, micro_batches: 16, recompute: selective}\n"),
        {});
    REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
    const auto planning = plan_scenario(*scenario, {});
    return planning ? planning->winner().candidate.config() : "none";
  };
  // All on each: eight layers keep 100 MB, one makes 900 MB again; weights and gradients 16 MB.
  CHECK(planned("1.72 GB") == "4");
  CHECK(planned("1.71 GB") != "4");
  CHECK(planned("1 GB") == "none");
}

TEST_CASE("some layer has to say what is made again") {
  const std::string rest = "}\nschedule: {name: 1f1b, micro_batches: 2, recompute: selective}\n";
  CHECK(problem_of("version: 1\nmodel: {uniform: {layers: 2, forward: 1 ms, backward: 2 ms}" +
                   rest) ==
        "schedule.recompute is 'selective', but no layer states what it recomputes");
  CHECK(problem_of("version: 1\nmodel: {uniform: {layers: 2, forward: 1 ms, backward: 2 ms, "
                   "activation: 8 B, selective: {activation: 9 B, forward: 1 us}}" +
                   rest) ==
        "model.uniform.selective.activation is 9 B, more than the 8 B of the layer's activation");
  CHECK(problem_of("version: 1\nmodel: {uniform: {layers: 2, forward: 1 ms, backward: 2 ms, "
                   "activation: 8 B, selective: {activation: 8 B, flops: 1 MFLOP}}" +
                   rest) == "model.uniform.selective.forward is missing");
}

TEST_CASE("what it takes to make it again is estimated, if it is not given") {
  const auto backward = [](const std::string& selective) {
    const Outcome outcome = predicted(
        "version: 1\nmodel: {uniform: {layers: 1, flops: 1 GFLOP, activation: 8 B, selective: "
        "{activation: 8 B, " +
        selective +
        "}}}\ncluster: {device: {peak: 1 TFLOP/s, memory_bandwidth: 1 GB/s, efficiency: 1}}\n"
        "schedule: {name: 1f1b, micro_batches: 1, recompute: selective}\n");
    return outcome.metrics.makespan - std::chrono::milliseconds(3);
  };
  CHECK(backward("flops: 200 MFLOP") == microseconds(200));
  CHECK(backward("flops: 200 MFLOP, memory_traffic: 300 kB") == microseconds(300));
  CHECK(backward("memory_traffic: 400 kB") == microseconds(400));
  CHECK(backward("forward: 7 us, flops: 200 MFLOP") == microseconds(7));
}

}  // namespace
}  // namespace plumbline::test
