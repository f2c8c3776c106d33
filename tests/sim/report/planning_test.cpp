// The planner's formula against the simulation of what it proposes.
//
// SPDX-License-Identifier: MIT
#include "sim/planning/planning.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "sim/planning/predict.h"
#include "sim/report/report.h"
#include "tests/support/close_to.h"
#include "tests/support/text_source.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

std::string random_scenario(std::uint64_t seed, const std::string& schedule) {
  Dice dice(seed);
  std::string text = "version: 1\nmodel:\n  layers:\n";
  const std::int64_t layers = dice.roll(2, 7);
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::int64_t activation = dice.roll(0, 64);
    text += fmt::format(
        "    - {{name: l{}, forward: {} us, backward: {} us, output: {} KiB, activation: {} KiB, "
        "parameters: {} KiB, selective: {{activation: {} KiB, forward: {} us}}}}\n",
        i, dice.roll(1, 90), dice.roll(1, 90), dice.roll(0, 64), activation, dice.roll(0, 64),
        dice.roll(0, activation), dice.roll(0, 20));
  }
  text += dice.roll(0, 1) == 0
              ? fmt::format("cluster: {{devices: {}, link: {{bandwidth: {} GB/s}}}}\n",
                            dice.roll(1, 6), dice.roll(1, 20))
              : fmt::format(
                    "cluster: {{levels: [{{size: {}, bandwidth: 20 GB/s}}, {{size: 2, "
                    "bandwidth: {} GB/s}}]}}\n",
                    dice.roll(1, 3), dice.roll(1, 10));
  return text + "plan: {partition: pipedream}\nschedule: {" + schedule +
         "}\ntraining: {optimizer_state: 2}\n";
}

/// Counts of the plans seen.
struct Seen {
  std::uint64_t plans = 0;
  std::uint64_t replicated = 0;  ///< Stages.
};

/// Plans the scenario: none of its plans beats the winner, or the formula by more than that share,
/// or holds more than it says, or has replicas that the schedule does not take.
void check_plans(const std::string& text, double beats_formula, Seen& seen) {
  CAPTURE(text);
  const auto scenario = parse_scenario(text_source("random.yaml", text), {});
  REQUIRE(scenario);
  const ScheduleChoice& choice = scenario->schedule;
  const bool shares = !choice.asynchronous() || choice.updates.weights == WeightRule::two;
  const auto planning = plan_scenario(*scenario, {});
  REQUIRE_MESSAGE(planning, (planning ? "" : to_text(planning.problems())));
  for (const SimulatedPlan& plan : planning->ranked) {
    ++seen.plans;
    CHECK(plan.time_s >= planning->winner().time_s);
    CHECK(plan.time_s >= plan.candidate.period_s * (1 - beats_formula));
    if (plan.candidate.flush) {
      const FlushShares& flush = *plan.candidate.flush;
      CHECK((flush.work_s + flush.flush_s + flush.all_reduce_s + flush.update_s) /
                choice.micro_batches ==
            close_to(plan.candidate.period_s));
    }
    const auto prediction = predict(with_plan(*scenario, plan.candidate));
    REQUIRE(prediction);
    for (std::size_t s = 0; s < plan.candidate.stages.size(); ++s) {
      const PlannedStage& stage = plan.candidate.stages[s];
      seen.replicated += stage.replicas > 1 ? 1 : 0;
      if (choice.asynchronous()) {
        CHECK(prediction->setup.weights[s].kept <= stage.weight_versions);
      } else {
        CHECK(stage.weight_versions == 1);
      }
      if (shares) CHECK(choice.micro_batches % stage.replicas == 0);
      for (const std::uint32_t slot : prediction->graph.stage_slots[s])
        CHECK(prediction->memory[slot].peak.sum() <= stage.peak_memory);
    }
  }
}

TEST_CASE("no simulated plan beats the formula, needs more memory than it says, or the winner" *
          doctest::test_suite("slow")) {
  Seen seen;
  for (std::uint64_t seed = 1; seed <= trials(100); ++seed) {
    check_plans(random_scenario(seed, "name: pipedream, micro_batches: 1200"),
                /*beats_formula=*/0.005, seen);
  }
  CHECK(seen.replicated > trials(100));
}

TEST_CASE(
    "no plan holds more than it says or cannot run, whatever the schedule but for vertical sync") {
  struct Case {
    const char* schedule;
    double beats_formula;  ///< Without a flush a short run does: its first ops wait for nothing.
  };
  constexpr Case cases[] = {
      {"name: gpipe, micro_batches: 6", 1e-6},
      {"name: 1f1b, micro_batches: 4", 1e-6},
      {"name: 1f1b, micro_batches: 12, recompute: full", 1e-6},
      {"name: 1f1b, micro_batches: 12, recompute: layers", 1e-6},
      {"name: 1f1b, micro_batches: 12, recompute: selective", 1e-6},
      {"name: eager-1f1b, micro_batches: 6", 1e-6},
      {"name: naive, micro_batches: 4", 1e-6},
      {"name: delayed-backward, micro_batches: 6", 1e-6},
      {"name: gpipe, micro_batches: 5, transfers: blocking", 1e-6},
      {"name: pipedream, micro_batches: 6, mini_batches: 20, weights: two", 1},
      {"name: pipedream, micro_batches: 120, weights: none", 1}};
  Seen seen;
  for (std::uint64_t seed = 1; seed <= trials(150); ++seed) {
    const Case& one = cases[seed % std::size(cases)];
    check_plans(random_scenario(seed, one.schedule), one.beats_formula, seen);
  }
  CHECK(seen.plans > trials(150));
}

TEST_CASE("with a flush weights are held once, and what fits is planned") {
  // 2 GB of weights, of gradients and of optimizer state each: 6 GB on every device.
  const auto scenario = parse_scenario(
      text_source("flush.yaml",
                  "version: 1\nmodel: {uniform: {layers: 8, forward: 10 ms, backward: 20 ms, "
                  "output: 1 MB, activation: 1 MB, parameters: 1 GB}}\n"
                  "cluster: {devices: 4, memory: 8 GB}\nplan: {stages: 4}\n"
                  "schedule: {name: 1f1b, micro_batches: 16}\ntraining: {optimizer_state: 1}\n"),
      {});
  REQUIRE(scenario);
  const auto planning = plan_scenario(*scenario, {});
  REQUIRE_MESSAGE(planning, (planning ? "" : to_text(planning.problems())));
  CHECK(planning->winner().candidate.config() == "1-1-1-1");
  CHECK(planning->winner().fits);
}

TEST_CASE("with recomputation activations are held once, and what fits is planned") {
  // Stage 0 has four micro-batches in flight: activations of 8 GB, or of 2 GB and inputs of 8 MB.
  // Layer by layer the whole model needs 1 GB and inputs of its layers, 7 MB.
  const auto planned = [](const std::string& recompute, const std::string& memory) -> std::string {
    const auto scenario = parse_scenario(
        text_source("recompute.yaml",
                    "version: 1\nmodel: {uniform: {layers: 8, forward: 10 ms, backward: 20 ms, "
                    "output: 1 MB, activation: 1 GB, parameters: 1 MB}}\n"
                    "cluster: {devices: 4, memory: " +
                        memory +
                        "}\nplan: {stages: 4}\n"
                        "schedule: {name: 1f1b, micro_batches: 16, recompute: " +
                        recompute + "}\n"),
        {});
    REQUIRE(scenario);
    const auto planning = plan_scenario(*scenario, {});
    return planning ? planning->winner().candidate.config() : "none";
  };
  CHECK(planned("full", "3 GB") == "1-1-1-1");
  CHECK(planned("none", "3 GB") == "none");
  CHECK(planned("layers", "3 GB") == "4");
  CHECK(planned("layers", "1.04 GB") == "4");  // and weights and gradients, 16 MB
  CHECK(planned("layers", "1.02 GB") != "4");
  CHECK(planned("full", "1.04 GB") == "none");
}

TEST_CASE("with a flush a shorter pipeline may win, and the formula sees it") {
  const auto winner = [](int micro_batches) {
    const auto scenario = parse_scenario(
        text_source("short.yaml",
                    "version: 1\nmodel: {uniform: {layers: 12, forward: 10 ms, backward: 20 ms, "
                    "output: 1 MB, activation: 1 MB, parameters: 100 MB}}\n"
                    "cluster: {devices: 4, link: {bandwidth: 10 GB/s}}\n"
                    "schedule: {name: 1f1b, micro_batches: " +
                        std::to_string(micro_batches) + "}\n"),
        {});
    REQUIRE(scenario);
    const auto planning = plan_scenario(*scenario, {});
    REQUIRE_MESSAGE(planning, (planning ? "" : to_text(planning.problems())));
    CHECK(planning->plans.best.front().config() == planning->winner().candidate.config());
    return planning->winner().candidate.config();
  };
  CHECK(winner(4) == "4");
  CHECK(winner(1) == "1");  // nothing else divides it, and four stages would run one by one
}

TEST_CASE("with a flush no plan of equally many replicas is faster than the planned one") {
  std::uint64_t compared = 0;
  for (std::uint64_t seed = 1; seed <= trials(60); ++seed) {
    std::string text = random_scenario(seed, "name: 1f1b, micro_batches: 12");
    CAPTURE(text);
    const auto scenario = parse_scenario(text_source("random.yaml", text), {});
    REQUIRE(scenario);
    const auto planning = plan_scenario(*scenario, {});
    REQUIRE_MESSAGE(planning, (planning ? "" : to_text(planning.problems())));
    const std::uint32_t devices = scenario->cluster.device_count();
    for (std::uint32_t stages = 1; stages <= devices; ++stages) {
      if (devices % stages != 0 || 12 % (devices / stages) != 0) continue;
      if (stages > scenario->model->graph.size()) continue;
      std::string replicas;
      for (std::uint32_t s = 0; s < stages; ++s)
        replicas += (s == 0 ? "" : ", ") + std::to_string(devices / stages);
      const std::string planned = "plan: {partition: pipedream}";
      std::string by_hand = text;
      by_hand.replace(by_hand.find(planned), planned.size(),
                      fmt::format("plan: {{stages: {}, replicas: [{}], partition: balanced}}",
                                  stages, replicas));
      const auto prediction = predict(*parse_scenario(text_source("hand.yaml", by_hand), {}));
      REQUIRE_MESSAGE(prediction, (prediction ? "" : to_text(prediction.problems())));
      CHECK(planning->winner().time_s <= prediction->iteration_time_s / 12 * (1 + 1e-12));
      ++compared;
    }
  }
  CHECK(compared > trials(60));
}

/// All ways to write `total` as a sum of `parts` numbers from 1 on.
std::vector<std::vector<std::uint32_t>> compositions(std::uint32_t total, std::uint32_t parts) {
  if (parts == 1) return {{total}};
  std::vector<std::vector<std::uint32_t>> all;
  for (std::uint32_t first = 1; first + parts <= total + 1; ++first) {
    for (std::vector<std::uint32_t>& rest : compositions(total - first, parts - 1)) {
      rest.insert(rest.begin(), first);
      all.push_back(std::move(rest));
    }
  }
  return all;
}

TEST_CASE("with a flush hardly any plan of all that there are is faster than the planned one") {
  std::uint64_t best_of_all = 0;
  std::uint64_t cases = 0;
  for (std::uint64_t seed = 1; seed <= trials(100); ++seed) {
    Dice dice(seed);
    const auto layers = static_cast<std::uint32_t>(dice.roll(3, 5));
    std::string text = "version: 1\nmodel:\n  layers:\n";
    for (std::uint32_t i = 0; i < layers; ++i) {
      text += fmt::format(
          "    - {{name: l{}, forward: {} us, backward: {} us, update: {} us, output: {} KiB, "
          "parameters: {} KiB}}\n",
          i, dice.roll(100, 900), dice.roll(200, 1800), dice.roll(0, 300), dice.roll(0, 4096),
          dice.roll(0, 16384));
    }
    if (seed % 2 == 0) {
      text += fmt::format("cluster: {{devices: 4, link: {{bandwidth: {} GB/s, latency: 10 us}}}}\n",
                          dice.roll(2, 40));
    } else {
      text += fmt::format(
          "cluster: {{levels: [{{size: 2, bandwidth: {} GB/s}}, {{size: 2, bandwidth: {} GB/s, "
          "latency: 10 us}}]}}\n",
          dice.roll(4, 60), dice.roll(1, 20));
    }
    const std::int64_t micro_batches = 2 * dice.roll(1, 6);
    text += fmt::format("schedule: {{name: {}, micro_batches: {}}}\n",
                        dice.roll(0, 1) == 0 ? "1f1b" : "gpipe", micro_batches);
    CAPTURE(text);
    const auto scenario = parse_scenario(text_source("random.yaml", text), {});
    REQUIRE(scenario);
    const auto planning = plan_scenario(*scenario, {});
    REQUIRE_MESSAGE(planning, (planning ? "" : to_text(planning.problems())));
    double min = planning->winner().time_s;
    for (std::uint32_t stages = 1; stages <= std::min(4U, layers); ++stages) {
      for (std::uint32_t used = stages; used <= 4; ++used) {
        for (const auto& replicas : compositions(used, stages)) {
          if (std::any_of(replicas.begin(), replicas.end(),
                          [&](std::uint32_t r) { return micro_batches % r != 0; }))
            continue;
          for (const auto& counts : compositions(layers, stages)) {
            const auto planned = parse_scenario(
                text_source("random.yaml",
                            text + fmt::format("plan: {{partition: [{}], replicas: [{}]}}\n",
                                               fmt::join(counts, ", "), fmt::join(replicas, ", "))),
                {});
            REQUIRE(planned);
            const auto prediction = predict(*planned);
            REQUIRE(prediction);
            min = std::min(min, prediction->iteration_time_s / static_cast<double>(micro_batches));
          }
        }
      }
    }
    CHECK(planning->winner().time_s <= min * 1.1);
    for (const SimulatedPlan& plan : planning->ranked)
      CHECK(plan.time_s >= plan.candidate.period_s * (1 - 1e-9));
    best_of_all += planning->winner().time_s <= min * (1 + 1e-9) ? 1 : 0;
    ++cases;
  }
  CHECK(best_of_all * 10 >= cases * 9);
}

TEST_CASE("plans that one would write by hand are asked beside those of the formula" *
          doctest::test_suite("slow")) {
  if (test::kSanitized) return;  // minutes there, and smaller searches go the same ways
  const auto scenario = parse_scenario(
      text_source("servers.yaml",
                  "version: 1\nmodel: {uniform: {layers: 83, forward: 15 ms, backward: 44 ms, "
                  "output: 64 MiB, activation: 64 MiB, parameters: 1600 MiB}}\n"
                  "cluster: {levels: [{size: 8, bandwidth: 450 GB/s}, {size: 8, bandwidth: 50 "
                  "GB/s}]}\nschedule: {name: 1f1b, micro_batches: 256}\n"),
      {});
  REQUIRE(scenario);
  const auto planning = plan_scenario(*scenario, {});
  REQUIRE_MESSAGE(planning, (planning ? "" : to_text(planning.problems())));
  // Uneven replicas promise less, and then wait for each other.
  const PlanCandidate& winner = planning->winner().candidate;
  const auto by_hand =
      std::find_if(planning->ranked.begin(), planning->ranked.end(),
                   [](const SimulatedPlan& plan) { return plan.candidate.config() == "32-32"; });
  REQUIRE(by_hand != planning->ranked.end());
  CHECK(planning->winner().time_s < by_hand->time_s);  // one that is some steps away from it
  CHECK(planning->plans.best.front().period_s < winner.period_s);
  CHECK(planning->winner().time_s < winner.period_s * 1.02);
}

TEST_CASE("a plan that fits by its simulated peaks is found where the formula's bound has none") {
  // One device has one micro-batch in flight; of two received gradients only one is ever there.
  const std::string text =
      "version: 1\nmodel: {uniform: {layers: 2, forward: 1 ms, backward: 2 ms, output: 40 MiB, "
      "activation: 40 MiB, parameters: 100 MiB}}\ncluster: {devices: 2, memory: MEMORY}\n"
      "plan: {stages: 2, partition: pipedream}\nschedule: {name: 1f1b, micro_batches: 7}\n";
  const auto planned = [&](const std::string& memory) {
    std::string own = text;
    own.replace(own.find("MEMORY"), 6, memory);
    return plan_scenario(*parse_scenario(text_source("tight.yaml", own), {}), {});
  };
  const auto roomy = planned("1 GiB");
  REQUIRE(roomy);
  CHECK(roomy->not_found.empty());
  REQUIRE(roomy->winner().candidate.config() == "1-1");
  const Bytes bound = roomy->winner().candidate.stages[0].peak_memory;
  const auto tight = planned(fmt::format("{} B", bound.count - 1));
  REQUIRE_MESSAGE(tight, (tight ? "" : to_text(tight.problems())));
  CHECK(tight->winner().candidate.config() == "1-1");
  CHECK(tight->winner().fits);
  CHECK(tight->not_found.starts_with("no plan fits the memory of"));
  const auto none = planned("10 MiB");
  REQUIRE(!none);
  CHECK(none.problems()[0].message.starts_with("no plan fits the memory of 10 MiB"));
}

TEST_CASE("links that are slower within servers than between them bound no all-reduce twice") {
  const auto scenario = parse_scenario(
      text_source(
          "ring.yaml",
          "version: 1\nmodel: {uniform: {layers: 1, forward: 1 us, backward: 1 us, "
          "parameters: 64 MiB}}\ncluster: {levels: [{size: 2, bandwidth: 8 GB/s}, {size: 2, "
          "bandwidth: 50 GB/s, latency: 500 us}]}\nplan: {partition: pipedream}\n"
          "schedule: {name: 1f1b, micro_batches: 4}\n"),
      {});
  REQUIRE(scenario);
  const auto planning = plan_scenario(*scenario, {});
  REQUIRE(planning);
  for (const SimulatedPlan& plan : planning->ranked)
    CHECK(plan.time_s >= plan.candidate.period_s * (1 - 1e-9));
}

TEST_CASE("a plan for many servers under a flush is found, if not the very best" *
          doctest::test_suite("slow")) {
  if (test::kSanitized) return;  // minutes there, and smaller searches go the same ways
  const auto scenario = parse_scenario(
      text_source("servers.yaml",
                  "version: 1\nmodel: {uniform: {layers: 126, forward: 15 ms, backward: 44 ms, "
                  "update: 10 ms, output: 64 MiB, activation: 64 MiB, parameters: 1600 MiB}}\n"
                  "cluster: {memory: 80 GiB, levels: [{size: 8, bandwidth: 450 GB/s}, {size: 8, "
                  "bandwidth: 50 GB/s}]}\nschedule: {name: 1f1b, micro_batches: 256}\n"),
      {});
  REQUIRE(scenario);
  const auto planning = plan_scenario(*scenario, {});
  REQUIRE_MESSAGE(planning, (planning ? "" : to_text(planning.problems())));
  CHECK(planning->plans.slack > 0);
  CHECK(planning->winner().fits);
  CHECK(to_table(*scenario, *planning)
            .print()
            .find("note: there are too many plans to compare them all") != std::string::npos);
}

TEST_CASE("a settled scenario runs the winner, and a written plan is read as the same one") {
  auto scenario = read_scenario("examples/planned.yaml", {});
  REQUIRE(scenario);
  const auto planning = plan_scenario(*scenario, {});
  REQUIRE(planning);
  const auto settled = resolve_plan(*scenario);
  REQUIRE(settled);
  CHECK(!settled->plan.is_planned());
  const auto prediction = predict(*settled);
  REQUIRE(prediction);
  CHECK(prediction->metrics.steady->period_s == close_to(planning->winner().time_s));
  CHECK(plan_yaml(*scenario, *planning) ==
        "# A plan for 'a planned partition on two servers', written by plumbline plan.\n"
        "stages: 2\npartition: [3, 2]\nreplicas: [7, 1]\n"
        "devices: [[0, 1, 2, 3, 4, 5, 6], [7]]\nwarm_up: [2, 0]\n");
}

TEST_CASE("given options narrow the plans down") {
  const auto scenario = read_scenario("examples/planned.yaml", {});
  REQUIRE(scenario);
  const auto straight =
      plan_scenario(*scenario, {.straight = true, .devices_at_most = {}, .progress = {}});
  REQUIRE(straight);
  for (const PlannedStage& stage : straight->winner().candidate.stages) CHECK(stage.replicas == 1);
  const auto few =
      plan_scenario(*scenario, {.straight = false, .devices_at_most = 3, .progress = {}});
  REQUIRE(few);
  CHECK(few->winner().candidate.devices_used() <= 3);
  const auto stopped = plan_scenario(
      *scenario,
      {.straight = false, .devices_at_most = {}, .progress = [](double) { return false; }});
  REQUIRE(!stopped);
  CHECK(stopped.problems().front().message == "planning was interrupted");
}

}  // namespace
}  // namespace plumbline::test
