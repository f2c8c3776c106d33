// The calibrated cost model against brute force, and worked cases.
//
// SPDX-License-Identifier: MIT
#include "schedules/planner/planner.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <tuple>

#include "schedules/planner/plan_formula.h"
#include "schedules/stages/stage_costs.h"
#include "tests/schedules/planner/small_model.h"
#include "tests/support/close_to.h"
#include "tests/support/rules.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

/// The best of everything that can be planned, priced stage by stage by formula_time.
class BruteForce {
 public:
  struct Best {
    double period_ns = kNever;
    std::uint32_t devices = 0;
    std::uint32_t stages = 0;
    std::int64_t traffic = 0;
  };

  explicit BruteForce(const PlannerInput& input)
      : input_(input), sets_(executed_sets(input.graph)) {}

  Best best() {
    behind((1U << input_.graph.size()) - 1, 0, 0);
    return best_;
  }

 private:
  /// Chooses the last stage of what is in `set`; positions from the end are taken up to `position`.
  void behind(std::uint32_t set, std::uint32_t position, std::uint32_t used) {
    if (set == 0) return price();
    if (input_.stages_at_most && cuts_.size() == *input_.stages_at_most) return;
    const std::uint32_t total = input_.cluster.device_count();
    const std::uint32_t group =
        input_.cluster.levels.size() > 1 ? input_.cluster.levels[0].size : total;
    std::vector<std::uint32_t> starts = {position};
    if (position % group != 0) starts.push_back((position / group + 1) * group);
    const std::uint32_t max = std::min(total, input_.devices_at_most.value_or(total)) - used;
    for (const std::uint32_t before : sets_) {
      if (before == set || (before & ~set) != 0) continue;
      const bool whole = before == 0 && cuts_.empty();
      if (work(set & ~before) == 0 && !whole) continue;
      for (const std::uint32_t start : starts) {
        for (std::uint32_t r = 1; r <= (input_.straight ? std::min(1U, max) : max); ++r) {
          if (start + r > total) break;
          if (!input_.residency.takes(r)) continue;
          cuts_.push_back({set & ~before, start, r});
          behind(before, start + r, used + r);
          cuts_.pop_back();
        }
      }
    }
  }

  std::int64_t work(std::uint32_t set) const {
    std::int64_t sum = 0;
    for (std::uint32_t i = 0; i < input_.graph.size(); ++i) {
      if ((set >> i & 1U) == 0) continue;
      const LayerCosts& c = input_.costs[i];
      sum += (c.forward.mean + c.backward.mean + c.update.mean).count();
    }
    return sum;
  }

  void price() {
    const std::uint32_t total = input_.cluster.device_count();
    Partition partition;
    std::uint32_t devices = 0;
    for (std::size_t s = cuts_.size(); s-- > 0;) {
      Stage stage;
      for (std::uint32_t i = 0; i < input_.graph.size(); ++i) {
        if ((cuts_[s].layers >> i & 1U) != 0) stage.layers.push_back({i});
      }
      for (std::uint32_t i = cuts_[s].replicas; i-- > 0;)
        stage.devices.push_back({total - 1 - (cuts_[s].position + i)});
      devices += cuts_[s].replicas;
      partition.stages.push_back(stage);
    }
    const StageCosts costs =
        stage_costs(input_.graph, input_.costs, partition, input_.gradient_width);
    std::vector<FormulaStage> stages;
    std::uint32_t left = devices;
    std::uint32_t front_replicas = 0, front_in_flight = 0;
    for (std::uint32_t s = 0; s < costs.stages.size(); ++s) {
      const StageCost& c = costs.stages[s];
      const auto r = static_cast<std::uint32_t>(partition.stages[s].devices.size());
      const auto per_op = static_cast<double>(input_.overheads.per_op.count());
      const auto ns = [](Duration time) { return static_cast<double>(time.count()); };
      stages.push_back({ns(c.forward) + per_op, ns(c.backward) + per_op,
                        ns(c.update) / (input_.residency.sharded_optimizer ? r : 1) + per_op,
                        c.parameters, c.stepped, c.gradients, c.gathered, c.reduced, c.activation,
                        costs.checkpoints(s, s), costs.cut_bytes(s), partition.stages[s].devices,
                        ns(c.again), s > 0 ? costs.cut_bytes(s - 1) : Bytes{}});
      const std::uint32_t in_flight = input_.residency.in_flight(left, r);
      if (input_.residency.as_few_as_fit) {
        stages[s].backward_ns +=
            recompute_that_fits_ns(stages[s], in_flight, *input_.cluster.memory, input_.residency,
                                   input_.optimizer_state * input_.residency.optimizer_share(r));
      }
      HeldInputs inputs;
      if (s > 0) {
        inputs = {costs.cut_bytes(s - 1), inputs_held(front_replicas, front_in_flight, r)};
      }
      const double memory =
          peak_memory(stages[s], in_flight, inputs, input_.residency,
                      input_.optimizer_state * input_.residency.optimizer_share(r));
      if (input_.cluster.memory && memory > static_cast<double>(input_.cluster.memory->count))
        return;
      left -= r;
      front_replicas = r;
      front_in_flight = in_flight;
    }
    const FormulaTime time =
        formula_time(input_.cluster, stages, input_.residency, input_.activation_transfers);
    const auto count = static_cast<std::uint32_t>(stages.size());
    const double slack = best_.period_ns * 1e-11;
    if (time.period_ns > best_.period_ns + slack) return;
    if (time.period_ns >= best_.period_ns - slack &&
        std::make_tuple(devices, count, time.traffic.count) >=
            std::make_tuple(best_.devices, best_.stages, best_.traffic)) {
      return;
    }
    best_ = {time.period_ns, devices, count, time.traffic.count};
  }

  struct Cut {
    std::uint32_t layers, position, replicas;
  };
  const PlannerInput& input_;
  std::vector<std::uint32_t> sets_;
  std::vector<Cut> cuts_;
  Best best_;
};

void check_against_brute_force(const PlannerInput& input) {
  const BruteForce::Best best = BruteForce(input).best();
  const auto plans = plan(input);
  if (best.period_ns == kNever) {
    REQUIRE(!plans);
    CHECK(plans.problems()[0].fault == Fault::infeasible);
    return;
  }
  REQUIRE(plans);
  const PlanCandidate& found = plans->best[0];
  CAPTURE(found.config());
  CHECK(found.period_s * 1e9 == test::close_to(best.period_ns, 1e-10));
  CHECK(found.devices_used() == best.devices);
  CHECK(found.stages.size() == best.stages);
  CHECK(found.traffic.count == best.traffic);
  for (const PlanCandidate& candidate : plans->best) {
    check_sound(input, candidate);
    CHECK(candidate.period_s >= found.period_s * (1 - 1e-12));
  }
}

TEST_CASE(
    "the calibrated plan is the best of all cuts, replicas and places, chains on flat links") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    const Small model = random_model(dice, 5, true, true);
    // Latencies so long that only stages without parameters are replicated.
    const std::int64_t longer = seed % 3 == 0 ? 20 : 1;
    const Cluster cluster = flat_cluster(
        4, {Duration{dice.roll(0, 20) * longer}, BytesPerSecond{dice.roll(1, 40) * 1'000'000'000}});
    check_against_brute_force({.graph = model.graph, .costs = model.costs, .cluster = cluster});
  }
}

TEST_CASE("the calibrated plan is the best of all on two levels, for graphs with several sources") {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    const Small model = random_model(dice, 4, seed % 3 == 0, false);
    const auto inner = static_cast<std::uint32_t>(dice.roll(1, 4));
    const Cluster cluster = two_levels(inner, dice.roll(2, 40) * 500'000'000, inner < 3 ? 3 : 2,
                                       dice.roll(2, 20) * 500'000'000, Duration{dice.roll(0, 5)});
    PlannerInput input{.graph = model.graph, .costs = model.costs, .cluster = cluster};
    if (dice.roll(0, 4) == 0) input.devices_at_most = static_cast<std::uint32_t>(dice.roll(1, 5));
    if (dice.roll(0, 4) == 0) input.stages_at_most = static_cast<std::uint32_t>(dice.roll(1, 3));
    input.activation_transfers = dice.roll(0, 4) > 0;
    input.straight = dice.roll(0, 4) == 0;
    check_against_brute_force(input);
  }
}

TEST_CASE("what a stage holds is that of its schedule") {
  const auto of = [](const char* name, std::optional<std::uint32_t> micro_batches) {
    Residency residency;
    residency.window = find_schedule_rule(name)->window;
    residency.micro_batches = micro_batches;
    residency.shared = micro_batches;
    return residency;
  };
  const Residency flushed = of("1f1b", 12);
  CHECK(flushed.in_flight(4, 1) == 4);
  CHECK(flushed.in_flight(16, 1) == 12);
  CHECK(flushed.in_flight(4, 3) == 2);
  CHECK(flushed.takes(3));
  CHECK_FALSE(flushed.takes(5));
  CHECK(of("gpipe", 12).in_flight(2, 3) == 4);
  CHECK(of("naive", 12).in_flight(8, 1) == 1);
  CHECK(of("eager-1f1b", 12).in_flight(4, 1) == 7);
  const Residency endless = of("pipedream", std::nullopt);
  CHECK(endless.in_flight(16, 1) == 16);
  CHECK(endless.in_flight(16, 15) == 2);
  CHECK(endless.takes(7));
  CHECK(endless.versions(3) == 3);
  CHECK(endless.with_activations(3) == 3);
}

TEST_CASE("the calibrated plan is the best of all that fit the memory, or says that none does") {
  int none = 0;
  const std::vector<ScheduleRule> rules = test::window_rules();
  for (std::uint64_t seed = 1; seed <= 180; ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    Small model = random_model(dice, 4, seed % 2 == 0, false);
    Cluster cluster = seed % 2 == 0 ? flat_cluster(4, {Duration{}, BytesPerSecond{10'000'000'000}})
                                    : two_levels(2, 20'000'000'000, 2, 5'000'000'000);
    cluster.memory = Bytes{dice.roll(500, 5000)};
    Residency residency;
    if (seed > 60) {  // of any schedule
      residency.window =
          rules[static_cast<std::size_t>(dice.roll(0, static_cast<std::int64_t>(rules.size()) - 1))]
              .window;
      constexpr Recompute kinds[] = {Recompute::none, Recompute::full, Recompute::layers,
                                     Recompute::selective};
      residency.recompute = kinds[dice.roll(0, 3)];
      if (residency.recompute == Recompute::selective) {
        for (LayerCosts& layer : model.costs) {
          layer.recomputation = Recomputed::selective;
          if (dice.roll(0, 2) == 0) continue;
          layer.selective = Selective{};
          layer.selective->activation = {dice.roll(0, layer.activation.count)};
        }
      }
      residency.as_few_as_fit = by_layer(residency.recompute) && dice.roll(0, 1) == 0;
      if (dice.roll(0, 2) > 0) residency.micro_batches = dice.roll(1, 6);
      if (dice.roll(0, 2) > 0) residency.versions_kept = dice.roll(1, 2);
      if (!residency.micro_batches && residency.window(1, 1000) == 1000)
        residency.micro_batches = 6;  // all of no end would be in flight
      if (dice.roll(0, 3) > 0) residency.shared = residency.micro_batches;
      residency.sharded_optimizer = dice.roll(0, 2) == 0;
      if (residency.sharded_optimizer)
        model.graph.share_steps(static_cast<std::int64_t>(seed % 4) + 1);
    }
    const PlannerInput input{.graph = model.graph,
                             .costs = model.costs,
                             .cluster = cluster,
                             .optimizer_state = static_cast<double>(dice.roll(0, 2)),
                             .gradient_width = seed % 3 == 0 ? 1.5 : 1,
                             .residency = residency};
    if (BruteForce(input).best().period_ns == kNever) ++none;
    check_against_brute_force(input);
  }
  CHECK(none > 0);
  CHECK(none < 120);
}

TEST_CASE("layer by layer no layer is free: a cut in front of one may be the only one that fits") {
  // b takes nothing and hands on what a makes. With b on the first device, which has two in flight,
  // the input of b is kept twice beside two gradients of 1 kB; without b its gradients alone are.
  const LayerGraph graph = LayerGraph::chain({{"a", "", {2000}}, {"b", "", {}}, {"c", "", {2000}}});
  std::vector<LayerCosts> costs(3);
  costs[0].forward.mean = costs[2].forward.mean = Duration{10};
  costs[0].output = costs[0].activation = costs[1].output = {1000};
  Cluster cluster = flat_cluster(2, {});
  cluster.memory = Bytes{7000};
  Residency residency;
  residency.recompute = Recompute::layers;
  residency.versions_kept = 1;
  const auto plans =
      plan({.graph = graph, .costs = costs, .cluster = cluster, .residency = residency});
  REQUIRE(plans);
  REQUIRE(plans->best[0].config() == "1-1");
  CHECK(plans->best[0].stages[0].layers.size() == 1);
  // Weights and gradients, a's activation made again, two gradients.
  CHECK(plans->best[0].stages[0].peak_memory == Bytes{4000 + 1000 + 2000});
}

TEST_CASE("two equal layers on two devices: a pipeline where gradients are heavy, else replicas") {
  Small model;
  model.add(10'000, 20'000, 1'000, 0);
  model.add(10'000, 20'000, 1'000, 0);
  model.connect({{0, 1}});
  Cluster cluster = flat_cluster(2, {Duration{}, BytesPerSecond{1'000'000'000}});
  // Without parameters both take 30 us a micro-batch; ties go to fewer stages.
  auto plans = plan({.graph = model.graph, .costs = model.costs, .cluster = cluster});
  REQUIRE(plans);
  CHECK(plans->best[0].config() == "2");
  CHECK(plans->best[0].period_s == test::close_to(30e-6));
  // 200 kB of parameters in all: the ring takes 2 (2 - 1) / 2 x 200 us, once in two micro-batches.
  Small heavy;
  heavy.add(10'000, 20'000, 1'000, 100'000);
  heavy.add(10'000, 20'000, 1'000, 100'000);
  heavy.connect({{0, 1}});
  plans = plan({.graph = heavy.graph, .costs = heavy.costs, .cluster = cluster});
  REQUIRE(plans);
  CHECK(plans->best[0].config() == "1-1");
  CHECK(plans->best[0].period_s == test::close_to(30e-6));
  CHECK(plans->best[0].traffic == Bytes{2'000});
  CHECK(to_text(plans->best[0].bottleneck) == "compute of stage 0");
  CHECK(plans->best[0].stages[0].warm_up == 1);
  CHECK(plans->one_device_s == test::close_to(60e-6));
  // Data parallelism waits for its ring: (20 + max(40, 200)) / 2.
  CHECK(plans->data_parallel.period_s == test::close_to(110e-6));
  // A link of 10 MB/s takes 100 us for 1 kB: then one device is best.
  cluster.levels[0].link.bandwidth = BytesPerSecond{10'000'000};
  plans = plan({.graph = heavy.graph, .costs = heavy.costs, .cluster = cluster});
  REQUIRE(plans);
  CHECK(plans->best[0].config() == "1");
}

TEST_CASE("a server's card carries outputs, gradients and ring together") {
  const Cluster cluster = two_levels(2, 1'000'000'000'000, 2, 1'000'000'000);
  // Stage 0 on devices 0, 1, 2; stage 1 on device 3. 1 kB crosses, 3 kB of parameters are reduced.
  const std::vector<FormulaStage> stages = {{.forward_ns = 1,
                                             .backward_ns = 2,
                                             .update_ns = 0,
                                             .parameters = {3'000},
                                             .stepped = {3'000},
                                             .gradients = {3'000},
                                             .gathered = {3'000},
                                             .reduced = {3'000},
                                             .activation = {},
                                             .checkpoints = {},
                                             .cut_bytes = {1'000},
                                             .devices = {{0}, {1}, {2}},
                                             .recompute_ns = 0,
                                             .entering = {}},
                                            {.forward_ns = 1,
                                             .backward_ns = 0,
                                             .update_ns = 0,
                                             .parameters = {},
                                             .stepped = {},
                                             .gradients = {},
                                             .gathered = {},
                                             .reduced = {},
                                             .activation = {},
                                             .checkpoints = {},
                                             .cut_bytes = {},
                                             .devices = {{3}},
                                             .recompute_ns = 0,
                                             .entering = {}}};
  const FormulaTime time = formula_time(cluster, stages, {}, true);
  // Server 0 sends 2/3 of the outputs, and the ring: 2 x 2/3 x 3 kB in 3 micro-batches.
  CHECK(time.period_ns == test::close_to(2000.0 / 3 + 4000.0 / 3));
  CHECK(time.bottleneck.kind == BottleneckKind::all_reduce);
  REQUIRE(time.bottleneck.card);
  CHECK(*time.bottleneck.card == Card{1, 0, true});
  CHECK(to_text(time.bottleneck) == "all-reduce of stage 0 (network card of group 0 at level 1)");
  CHECK(time.traffic == Bytes{2'000 + 4'000});
}

TEST_CASE("warm-ups at full rate keep one more in flight on every replica than the stage behind") {
  using Depths = std::vector<std::uint32_t>;
  CHECK(full_rate_warm_ups({1, 1, 1, 1}, 0) == Depths{3, 2, 1, 0});
  CHECK(full_rate_warm_ups({1, 2, 1}, 0) == Depths{4, 1, 0});
  CHECK(full_rate_warm_ups({15, 1}, 0) == Depths{1, 0});
  CHECK(full_rate_warm_ups({1, 2, 1}, 1) == Depths{7, 2, 0});
}

TEST_CASE("what fits no memory names the fullest stage and what it lacks") {
  Small model;
  model.add(10, 10, 8, 100, 10);
  model.add(10, 10, 8, 1'000, 10);
  model.connect({{0, 1}});
  const Cluster cluster = flat_cluster(2, {Duration{}, BytesPerSecond{1'000'000'000}}, Bytes{500});
  const auto plans =
      plan({.graph = model.graph, .costs = model.costs, .cluster = cluster, .optimizer_state = 1});
  REQUIRE(!plans);
  const Diagnostic& problem = plans.problems()[0];
  CHECK(problem.fault == Fault::infeasible);
  // The second layer alone: weights, gradients and state of 1000 B, 10 B kept, inputs for two.
  CHECK(problem.message ==
        "no plan fits the memory of 500 B per device: in the one that needs least (1-1), stage 1 "
        "(layers 'l1' to 'l1') lacks 2.467 KiB");
}

TEST_CASE(
    "the temporary tensors of one layer, the largest, have room beside all that is added up") {
  Small model;
  for (const std::int64_t temporary : {50, 90, 30}) {
    model.add(1, 2, 10, 100);
    model.costs.back().temporary = {temporary};
  }
  model.connect({{0, 1}, {1, 2}});
  Cluster cluster = two_levels(2, 3'000'000'000, 2, 1'000'000'000);
  const PlannerInput input{.graph = model.graph, .costs = model.costs, .cluster = cluster};
  CHECK(input.temporary() == Bytes{90});
  CHECK_FALSE(input.memory());
  cluster.memory = Bytes{1000};
  CHECK(input.memory() == Bytes{910});
  cluster.memory = Bytes{90};
  CHECK(input.memory() == Bytes{1});
}

TEST_CASE("planning again gives the same plans; giving up is told") {
  Dice dice(7);
  const Small model = random_model(dice, 8, false, false);
  const Cluster cluster = two_levels(2, 3'000'000'000, 2, 1'000'000'000);
  PlannerInput input{.graph = model.graph, .costs = model.costs, .cluster = cluster};
  const auto first = plan(input);
  const auto second = plan(input);
  REQUIRE((first && second));
  REQUIRE(first->best.size() == second->best.size());
  for (std::size_t i = 0; i < first->best.size(); ++i) {
    CHECK(first->best[i].config() == second->best[i].config());
    CHECK(first->best[i].order == second->best[i].order);
    CHECK(first->best[i].devices == second->best[i].devices);
  }
  input.progress = [](double) { return false; };
  const auto stopped = plan(input);
  REQUIRE(!stopped);
  CHECK(stopped.problems()[0].message == "planning was interrupted");
}

}  // namespace
}  // namespace plumbline::test
