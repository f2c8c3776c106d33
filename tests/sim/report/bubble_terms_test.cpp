// The terms of a bubble: they add up, and each agrees with a formula or a calculation by hand.
//
// SPDX-License-Identifier: MIT
#include "sim/prediction/bubble_terms.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sstream>

#include "sim/report/bubble_words.h"
#include "tests/support/examples.h"
#include "tests/support/random_pipeline.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

using std::chrono::microseconds;

/// A run with its terms.
struct Explained {
  Outcome outcome;
  BubbleTerms terms;

  Duration sum() const {
    Duration time = terms.base_time;
    for (const BubbleTerm& term : terms.terms) time += term.time;
    return time;
  }
  Duration time() const {
    const auto& steady = outcome.metrics.steady;
    return steady ? steady->length : outcome.metrics.makespan;
  }
  double fraction() const {
    double sum = terms.base;
    for (const BubbleTerm& term : terms.terms) sum += term.fraction;
    return sum;
  }
  std::vector<BubbleCause> causes() const {
    std::vector<BubbleCause> found;
    for (const BubbleTerm& term : terms.terms) found.push_back(term.cause);
    return found;
  }
};

Explained explained(const Scenario& scenario) {
  const auto settled = resolve_plan(scenario);
  REQUIRE(settled);
  auto outcome = predict(*settled);
  REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
  BubbleTerms terms = bubble_terms(*outcome);
  outcome->bubble_terms = terms;
  return {*std::move(outcome), terms};
}

Explained explained(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const auto scenario = parse_scenario(text_source("test.yaml", text), overrides);
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  return explained(*scenario);
}

Explained explained_example(const std::string& name,
                            const std::vector<std::string>& overrides = {}) {
  const auto scenario = read_scenario("examples/" + name + ".yaml", overrides);
  REQUIRE(scenario);
  return explained(*scenario);
}

/// A scenario of layers with these forwards and backwards in ms, one a stage.
std::string layers(const std::vector<std::pair<double, double>>& times, const std::string& more) {
  std::string list;
  for (std::size_t i = 0; i < times.size(); ++i) {
    list += fmt::format("{}{{name: l{}, forward: {} ms, backward: {} ms, parameters: 1 MB}}",
                        i > 0 ? ", " : "", i, times[i].first, times[i].second);
  }
  return fmt::format("version: 1\nmodel: {{layers: [{}]}}\nplan: {{stages: {}}}\n{}\n", list,
                     times.size(), more);
}

TEST_CASE("with one stage twice as long, formula and uneven stages are the whole bubble") {
  for (const char* const schedule : {"gpipe", "1f1b", "eager-1f1b"}) {
    CAPTURE(schedule);
    const Explained e =
        explained(layers({{1, 2}, {1, 2}, {1, 2}, {2, 4}},
                         fmt::format("schedule: {{name: {}, micro_batches: 8}}", schedule)));
    // (8 + 3) x 3.75 ms, and 3 x 1 + 8 x 6 + 3 x 2 ms.
    REQUIRE(e.terms.formula);
    CHECK(e.terms.base_time == microseconds(41250));
    CHECK(e.terms.base == doctest::Approx(3.0 / 11).epsilon(1e-15));
    REQUIRE(e.causes() == std::vector{BubbleCause::uneven_stages});
    CHECK(e.terms.terms[0].time == microseconds(15750));
    CHECK(e.terms.whole == doctest::Approx(1 - 8 * 15.0 / (4 * 57)).epsilon(1e-15));
    REQUIRE(e.terms.slowest);
    CHECK(e.terms.slowest->stage == 3);
    CHECK(!e.terms.slowest->is_device);
    CHECK(e.terms.slowest->above_mean == doctest::Approx(0.6).epsilon(1e-12));
  }
}

TEST_CASE("the naive order has the same bubble with any stages, and takes as long") {
  const Explained e =
      explained(layers({{1, 2}, {1, 2}, {2, 4}}, "schedule: {name: naive, micro_batches: 5}"));
  CHECK(e.terms.terms.empty());
  CHECK(e.terms.base_time == microseconds(60000));
  CHECK(bubble_table(e.outcome, e.terms).empty());
  CHECK(
      bubble_or_base(e.outcome, e.terms).print() ==
      "  the bubble fraction of 66.67 % is that of equal stages on free links: (p-1)/p with p = 3 "
      "and m = 5\n");
}

TEST_CASE("stages with the same sums and other ratios of forward to backward are a term apart") {
  const Explained e =
      explained(layers({{1, 3}, {2, 2}}, "schedule: {name: gpipe, micro_batches: 4}"));
  CHECK(e.terms.base_time == microseconds(20000));  // (4 + 1)(1.5 + 2.5) ms
  REQUIRE(e.causes() == std::vector{BubbleCause::uneven_passes});
  CHECK(e.terms.terms[0].time == microseconds(3000));  // 3 + 3 x 2 + 5 + 3 x 3 ms
  CHECK(!e.terms.slowest);
}

TEST_CASE("updates, overhead, transfers and all-reduces are terms of their own") {
  const std::vector<std::pair<double, double>> equal = {{1, 2}, {1, 2}};
  const std::string schedule = "schedule: {name: 1f1b, micro_batches: 2}\n";
  const Explained e =
      explained(layers(equal, schedule + "overhead: {per_iteration: 1 ms}"),
                {"model.layers=[{name: a, forward: 1 ms, backward: 2 ms, update: 3 ms}, "
                 "{name: b, forward: 1 ms, backward: 2 ms, update: 3 ms}]"});
  REQUIRE(e.causes() == std::vector{BubbleCause::updates, BubbleCause::overhead});
  CHECK(e.terms.base_time == microseconds(9000));
  CHECK(e.terms.terms[0].time == microseconds(3000));
  CHECK(e.terms.terms[1].time == microseconds(1000));
  // Overhead first: 1 - 12/20; then updates, during which all are busy.
  CHECK(e.terms.base + e.terms.terms[1].fraction == doctest::Approx(0.4).epsilon(1e-12));
  CHECK(e.terms.whole == doctest::Approx(1 - 18.0 / 26).epsilon(1e-12));

  const Explained linked =
      explained(layers(equal, schedule + "cluster: {devices: 2, link: {latency: 250 us}}"));
  REQUIRE(linked.causes() == std::vector{BubbleCause::transfers});
  CHECK(linked.terms.terms[0].time == microseconds(500));  // 2c((p-1)m/p + p-2)

  const Explained copied = explained(
      layers(equal, schedule + "cluster: {devices: 4, link: {latency: 0 us, bandwidth: 1 GB/s}}"),
      {"plan.data_parallel=2"});
  REQUIRE(copied.causes() == std::vector{BubbleCause::collectives});
  CHECK(copied.terms.terms[0].time == microseconds(1000));  // 2 (2-1)/2 x 1 MB at 1 GB/s
}

TEST_CASE("the slowest stage is named with the word for what makes it slow, where that is known") {
  const auto slowest = [](const std::string& example,
                          const std::vector<std::string>& overrides = {}) {
    const Explained e = explained_example(example, overrides);
    REQUIRE(e.terms.slowest);
    return to_text(*e.terms.slowest);
  };
  CHECK(slowest("layouts") == "stage 1 takes 3.4 % more than the mean (it has more layers)");
  CHECK(slowest("uneven-stages") == "stage 2 takes 60.0 % more than the mean (it holds head)");
  CHECK(slowest("fewest-recomputed") ==
        "stage 0 takes 8.7 % more than the mean (it recomputes more)");
  CHECK(slowest("estimated-transformer") ==
        "stage 0 takes 2.0 % more than the mean (it has more layers)");
  CHECK(slowest("noisy") == "stage 2 takes 33.3 % more than the mean");
  CHECK(slowest("four-stages", {"plan.stages=3", "cluster.devices=3"}) ==
        "stage 0 takes 12.5 % more than the mean (it has more layers)");
  CHECK(slowest("four-stages", {"plan.partition=[1,2,2,3]"}) ==
        "stage 3 takes 50.0 % more than the mean (it has more layers)");
}

TEST_CASE("a long layer among others, and an embedding, are named") {
  const auto why = [](const std::string& model, const std::string& partition) {
    const Explained e =
        explained(fmt::format("version: 1\nmodel: {{layers: [{}]}}\nplan: {{partition: {}}}\n"
                              "schedule: {{name: 1f1b, micro_batches: 8}}\n",
                              model, partition));
    REQUIRE(e.terms.slowest);
    return e.terms.slowest->why;
  };
  const auto layer = [](const std::string& name, int ms) {
    return fmt::format("{{name: {}, forward: {} ms, backward: {} ms}}", name, ms, 2 * ms);
  };
  CHECK(why(layer("embedding", 1) + ", " + layer("block_0", 2) + ", " + layer("block_1", 2) + ", " +
                layer("block_2", 2) + ", " + layer("block_3", 2),
            "[3, 2]") == "embedding");
  CHECK(why(layer("a", 2) + ", " + layer("b", 2) + ", " + layer("c", 2) + ", " + layer("d", 5),
            "[2, 2]") == "d");
  CHECK(why(layer("a", 2) + ", " + layer("b", 5), "[1, 1]").empty());
}

TEST_CASE("replicas and stages that share a device are equal where all devices do the same") {
  const Explained replicated = explained(
      layers({{2, 4}, {1, 2}}, "cluster: {devices: 3}\nschedule: {name: gpipe, micro_batches: 4}"),
      {"plan.replicas=[2, 1]"});
  CHECK(replicated.terms.terms.empty());
  CHECK(!replicated.terms.slowest);
  const Explained shared =
      explained(layers({{1, 2}, {1, 2}, {2, 4}}, "schedule: {name: 1f1b, micro_batches: 4}"),
                {"plan.devices=[0, 0, 1]"});
  CHECK(shared.terms.base_time == microseconds(30000));
  CHECK(!shared.terms.slowest);
  const Explained uneven =
      explained(layers({{1, 2}, {1, 2}, {1, 2}}, "schedule: {name: 1f1b, micro_batches: 4}"),
                {"plan.devices=[0, 0, 1]"});
  REQUIRE(uneven.terms.slowest);
  CHECK(to_text(*uneven.terms.slowest) == "device 0 (stages 0, 1) takes 33.3 % more than the mean");
  CHECK(uneven.causes() == std::vector{BubbleCause::uneven_stages});
}

TEST_CASE("of an asynchronous run the slowest stage sets the period, which bounds the bubble") {
  const Explained e =
      explained(layers({{1, 2}, {1, 2}, {2, 4}}, "schedule: {name: pipedream, micro_batches: 8}"));
  CHECK(e.terms.steady);
  CHECK(e.terms.base == doctest::Approx(0).epsilon(1e-12));
  REQUIRE(e.causes() == std::vector{BubbleCause::uneven_stages});
  CHECK(e.terms.whole == doctest::Approx(1.0 / 3).epsilon(1e-9));  // 12 of 18 ms
  CHECK(
      bubble_table(e.outcome, e.terms)
          .print()
          .find(
              "+33.33 points  uneven stages: stage 2 takes 50.0 % more than the mean; it sets the "
              "period\n") != std::string::npos);
  CHECK(bubble_sentences(e.outcome, e.terms, false).find("it sets the period") !=
        std::string::npos);
}

TEST_CASE("base and terms of every example add up, in time, in points, and in print") {
  for (const std::string& name : example_names()) {
    CAPTURE(name);
    const Explained e = explained_example(name);
    CHECK(e.sum() == e.time());
    CHECK(e.fraction() == doctest::Approx(e.terms.whole).epsilon(1e-12));
    const std::string table = bubble_table(e.outcome, e.terms).print();
    if (table.empty()) continue;
    double sum = 0;
    std::istringstream lines(table);
    std::string line;
    std::getline(lines, line);
    std::getline(lines, line);
    while (std::getline(lines, line)) {
      const double number = std::stod(line);
      if (line.find("together") == std::string::npos) {
        sum += number;
      } else {
        CHECK(number == doctest::Approx(sum).epsilon(1e-9));
      }
    }
  }
}

/// Any scenario with a flush: schedule, stages, times, links, copies, updates, recomputation.
std::string random_scenario(Dice& dice) {
  std::vector<const ScheduleRule*> rules;
  for (const ScheduleRule& rule : schedule_rules()) {
    if (!rule.whole_model) rules.push_back(&rule);
  }
  const auto& rule =
      *rules[static_cast<std::size_t>(dice.roll(0, static_cast<std::int64_t>(rules.size()) - 1))];
  const std::int64_t devices = 2 * dice.roll(1, 3);
  const bool both = rule.chunks && replicas_in(rule.chunks->placement) > 1;
  const std::int64_t stages = devices * (rule.chunks && !both ? rule.chunks->usual_chunks() : 1);
  const bool even = dice.roll(0, 2) == 0;
  std::string list;
  for (std::int64_t i = 0; i < stages; ++i) {
    const auto us = [&](std::int64_t max) { return even ? max / 2 + 1 : dice.roll(1, max); };
    const std::int64_t input = us(60);
    const std::int64_t weight = us(60);
    list += fmt::format(
        "{}{{name: l{}, forward: {} us, backward: {} us, backward_input: {} us, backward_weight: "
        "{} us, update: {} us, output: {} kB, parameters: {} kB, activation: 9 kB}}",
        i > 0 ? ", " : "", i, us(60), input + weight, input, weight, dice.roll(0, 1) * us(9),
        dice.roll(1, 90), dice.roll(0, 90));
  }
  const std::int64_t copies = rule.asynchronous ? 1 : dice.roll(1, 2);
  std::string text =
      fmt::format("version: 1\nmodel: {{layers: [{}]}}\nplan: {{stages: {}, data_parallel: {}}}\n",
                  list, stages, copies);
  text += fmt::format("cluster: {{devices: {}, link: {{latency: {} us, bandwidth: {} GB/s}}}}\n",
                      devices * copies, dice.roll(0, 1) * dice.roll(0, 9), dice.roll(1, 50));
  const std::int64_t recompute = dice.roll(0, 2);
  text += fmt::format("schedule: {{name: {}, micro_batches: {}, mini_batches: {}{}{}{}}}\n",
                      rule.name, devices * dice.roll(2, 3), dice.roll(1, 2),
                      recompute == 1   ? ", recompute: full"
                      : recompute == 2 ? ", recompute: layers"
                                       : "",
                      dice.roll(0, 3) == 0 ? ", transfers: blocking" : "",
                      dice.roll(0, 1) == 0 ? ", bucket: 30 kB" : "");
  if (!rule.asynchronous) text += fmt::format("training: {{zero_stage: {}}}\n", dice.roll(0, 1));
  text += fmt::format("overhead: {{per_op: {} us, per_iteration: {} us}}\n", dice.roll(0, 1),
                      dice.roll(0, 1) * dice.roll(0, 20));
  return text;
}

TEST_CASE("of any scenario base and terms add up, and nothing is left over") {
  std::size_t with_formula = 0;
  std::size_t seen = 0;
  std::array<std::size_t, kBubbleCauses> counts{};
  for (std::uint64_t seed = 1; seed <= trials(600); ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    const auto scenario = parse_scenario(text_source("random.yaml", random_scenario(dice)), {});
    REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
    if (!predict(*scenario)) continue;  // a deadlock of blocking transfers, say
    ++seen;
    const Explained e = explained(*scenario);
    CHECK(e.sum() == e.time());
    CHECK(e.fraction() == doctest::Approx(e.terms.whole).epsilon(1e-9));
    for (const BubbleCause cause : e.causes()) ++counts[static_cast<std::size_t>(cause)];
    if (!e.terms.formula) continue;
    ++with_formula;
    CHECK(e.terms.base_time == e.outcome.setup.rules.mini_batches * e.terms.formula->makespan);
    CHECK(e.terms.base == doctest::Approx(e.terms.formula->bubble_fraction).epsilon(1e-12));
  }
  // All costs put back are the run, to the nanosecond, in time and in work.
  CHECK(counts[static_cast<std::size_t>(BubbleCause::changing_rates)] == 0);
  CHECK(counts[static_cast<std::size_t>(BubbleCause::measured)] == 0);
  for (const BubbleCause cause :
       {BubbleCause::uneven_stages, BubbleCause::uneven_passes, BubbleCause::transfers,
        BubbleCause::collectives, BubbleCause::updates, BubbleCause::overhead})
    CHECK_MESSAGE(counts[static_cast<std::size_t>(cause)] > seen / 20, name(cause));
  CHECK(with_formula > seen / 5);
}

TEST_CASE("slices of unequal work, pairs and neighbours are terms") {
  const Explained slices = explained_example("sequence-slices", {"schedule.slices=[1, 2, 3, 4]"});
  CHECK(slices.sum() == slices.time());
  const auto has = [](const Explained& e, BubbleCause cause) {
    const auto causes = e.causes();
    return std::find(causes.begin(), causes.end(), cause) != causes.end();
  };
  CHECK(has(slices, BubbleCause::uneven_slices));
  CHECK(has(explained_example("neighbours"), BubbleCause::changing_rates));
  CHECK(has(explained_example("two-servers"), BubbleCause::changing_rates));
}

TEST_CASE("what a real run has beside the simulation of its costs is a term") {
  const auto scenario = read_scenario("examples/uneven-stages.yaml", {});
  REQUIRE(scenario);
  auto outcome = predict(*scenario);
  REQUIRE(outcome);
  outcome->metrics.makespan += microseconds(500);
  for (DeviceMetrics& device : outcome->metrics.devices) device.idle += microseconds(500);
  const BubbleTerms terms = bubble_terms(*outcome, true);
  REQUIRE(terms.terms.size() == 2);
  CHECK(terms.terms[0].cause == BubbleCause::measured);
  CHECK(terms.terms[0].time == microseconds(500));
  CHECK(terms.terms[1].cause == BubbleCause::uneven_stages);
  CHECK(bubble_sentences(*outcome, terms, true)
            .find("; measured times instead of predicted ones add ") != std::string::npos);
}

TEST_CASE("the bubble stands beside that of equal stages in words") {
  const auto words = [](const std::string& example, const std::vector<std::string>& overrides,
                        bool measured = false) {
    const Explained e = explained_example(example, overrides);
    return bubble_sentences(e.outcome, e.terms, measured);
  };
  CHECK(words("four-stages", {}) ==
        "By the formula for equal stages on free links, (p-1)/(m+p-1) with p = 4 and m = 8, the "
        "bubble fraction is 27.27 %; the simulation says the same.");
  CHECK(words("slow-link", {}) ==
        "By the formula for equal stages on free links, (p-1)/(m+p-1) with p = 4 and m = 8, the "
        "bubble fraction is 27.27 %; the simulation has 41.46 %, 14.19 points more. Transfers add "
        "14.19 points. The stages and links as they are have a closed form, too: makespan = "
        "(m+p-1)(f+b) + 2c((p-1)m/p + p-2), which gives 41.46 %.");
  CHECK(words("layouts", {}) ==
        "By the formula for equal stages on free links, (p-1)/(m+p-1) with p = 4 and m = 128, the "
        "bubble fraction is 2.29 %; the simulation has 5.45 %, 3.16 points more. Uneven stages add "
        "2.89 points: stage 1 takes 3.4 % more than the mean (it has more layers); transfers add "
        "0.21 points; reduce-scatters and all-gathers add 0.06 points.");
  CHECK(words("blocking-transfers", {}) ==
        "No closed form is known for this order: equal stages on free links have a bubble fraction "
        "of 11.11 % in a simulation of their own; the simulation has 9.68 %, 1.43 points less. "
        "Blocking transfers take off 1.43 points: they count as busy time.");
  CHECK(words("pipedream-async", {}) ==
        "No closed form holds for an asynchronous schedule. In the steady state all stages take "
        "the same, and the warm-up and the drain are paid once. Equal stages on free links would "
        "have a steady bubble of 0.00 %; the simulation has 2.20 %, 2.20 points more. Transfers "
        "add 2.20 points.");
  CHECK(words("four-stages", {}, true).find("; the measured run says the same.") !=
        std::string::npos);
  CHECK(words("four-stages", {"model.uniform.forward=0 ms", "model.uniform.backward=0 ms"}) ==
        "The run takes no time, so there is no bubble.");
}

}  // namespace
}  // namespace plumbline::test
