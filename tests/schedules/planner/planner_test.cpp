// Both cost models against brute force, worked cases, and the values of the original program.
//
// SPDX-License-Identifier: MIT
#include "schedules/planner/planner.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "models/import/pipedream_graph.h"
#include "schedules/planner/plan_formula.h"
#include "schedules/planner/published_frontiers.h"
#include "schedules/planner/published_planner.h"
#include "schedules/stages/stage_costs.h"
#include "tests/support/close_to.h"
#include "tests/support/rules.h"
#include "tests/support/text_source.h"

namespace plumbline {
namespace {

using test::Dice;

constexpr double kNever = std::numeric_limits<double>::infinity();

/// A graph with costs, as one thing.
struct Small {
  LayerGraph graph;
  std::vector<LayerCosts> costs;

  void add(std::int64_t forward, std::int64_t backward, std::int64_t output,
           std::int64_t parameters, std::int64_t activation = 0, std::int64_t update = 0) {
    // All but what every third layer has is replicated; without share_steps() that says nothing.
    const Bytes replicated{graph.size() % 3 == 2 ? 0 : parameters};
    graph.add_layer({"l" + std::to_string(graph.size()), "", {parameters}, replicated});
    LayerCosts cost;
    cost.forward.mean = Duration{forward};
    cost.backward.mean = Duration{backward};
    cost.update.mean = Duration{update};
    cost.output = {output};
    cost.activation = {activation};
    costs.push_back(cost);
  }
  void connect(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& edges) {
    std::vector<LayerEdge> all;
    for (const auto& [from, to] : edges) all.push_back({{from}, {to}});
    graph.add_edges(all);
  }
};

/// A chain, or a graph with skips, branches and (unless one_source) several sources; some layers
/// cost nothing.
Small random_model(Dice& dice, std::uint32_t layers, bool chain, bool one_source) {
  Small model;
  for (std::uint32_t i = 0; i < layers; ++i) {
    const bool is_free = dice.roll(0, 3) == 0;
    model.add(is_free ? 0 : dice.roll(1, 9) * 10, is_free ? 0 : dice.roll(1, 9) * 20,
              dice.roll(0, 6) * 100, is_free ? 0 : dice.roll(0, 5) * 100,
              is_free ? 0 : dice.roll(0, 5) * 50, is_free ? 0 : dice.roll(0, 1) * 5);
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  for (std::uint32_t i = 1; i < layers; ++i) {
    if (chain) {
      edges.emplace_back(i - 1, i);
      continue;
    }
    if (one_source || dice.roll(0, 3) > 0) {
      edges.emplace_back(static_cast<std::uint32_t>(dice.roll(0, i - 1)), i);
    }
    if (dice.roll(0, 1) == 0)
      edges.emplace_back(static_cast<std::uint32_t>(dice.roll(0, i - 1)), i);
  }
  model.connect(edges);
  return model;
}

Cluster two_levels(std::uint32_t inner, std::int64_t inner_rate, std::uint32_t outer,
                   std::int64_t outer_rate, Duration latency = {}) {
  return {{{"server", inner, {latency, BytesPerSecond{inner_rate}}},
           {"cluster", outer, {latency * 3, BytesPerSecond{outer_rate}}}},
          std::nullopt};
}

/// All sets of layers that hold their producers, as masks, ascending.
std::vector<std::uint32_t> executed_sets(const LayerGraph& graph) {
  std::vector<std::uint32_t> sets;
  for (std::uint32_t set = 0; set < (1U << graph.size()); ++set) {
    bool closed = true;
    for (const LayerEdge& edge : graph.edges()) {
      closed = closed && ((set >> edge.to.value & 1U) == 0 || (set >> edge.from.value & 1U) != 0);
    }
    if (closed) sets.push_back(set);
  }
  return sets;
}

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

/// A plan is a partition of the model on devices of the cluster, each used once.
void check_sound(const PlannerInput& input, const PlanCandidate& plan) {
  std::vector<std::uint32_t> place(input.graph.size(), 0);
  for (std::uint32_t i = 0; i < plan.order.size(); ++i) place[plan.order[i].value] = i;
  REQUIRE(plan.order.size() == input.graph.size());
  for (const LayerEdge& edge : input.graph.edges())
    CHECK(place[edge.from.value] < place[edge.to.value]);
  std::vector<LayerId> runs;
  std::vector<bool> used(input.cluster.device_count(), false);
  REQUIRE(plan.devices.size() == plan.stages.size());
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    CHECK(!plan.stages[s].layers.empty());
    CHECK(plan.devices[s].size() == plan.stages[s].replicas);
    runs.insert(runs.end(), plan.stages[s].layers.begin(), plan.stages[s].layers.end());
    for (const DeviceId device : plan.devices[s]) {
      REQUIRE(device.value < used.size());
      CHECK(!used[device.value]);
      used[device.value] = true;
    }
    if (input.cluster.memory && input.cost_model == CostModel::calibrated)
      CHECK(plan.stages[s].peak_memory <= *input.cluster.memory);
  }
  CHECK(runs == plan.order);
}

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

/// The published recurrence without tables: every way to split, one after the other.
struct PublishedBrute {
  const std::vector<double>& compute;  ///< Sums up to and including state j.
  const std::vector<double>& parameters;
  const std::vector<double>& output;
  const std::vector<PublishedLevel>& levels;
  bool transfers;
  bool straight;

  double sum(const std::vector<double>& of, std::size_t i, std::size_t j) const {
    return of[j] - (i == 0 ? 0 : of[i - 1]);
  }
  double comp(std::size_t level, std::size_t i, std::size_t j) const {
    return level == 0 ? sum(compute, i, j) : best(level - 1, i, j, levels[level - 1].machines);
  }
  double best(std::size_t level, std::size_t i, std::size_t j, std::uint32_t m) const {
    const double rate = levels[level].bandwidth;
    const double below = level == 0 ? 1 : levels[level - 1].machines;
    double min = kNever;
    if (m == 1 || !straight)
      min = (comp(level, i, j) + 4.0 * (m - 1) * sum(parameters, i, j) / (rate * m) / below) / m;
    for (std::size_t k = i; k < j; ++k) {
      for (std::uint32_t behind = 1; behind < (straight ? std::min(m, 2U) : m); ++behind) {
        double time = best(level, i, k, m - behind);
        time = std::max(time, (comp(level, k + 1, j) +
                               4.0 * (behind - 1) * sum(parameters, k + 1, j) / (rate * behind)) /
                                  behind);
        if (transfers) time = std::max(time, 2 * output[k] / (rate * behind));
        if (transfers && j + 1 < output.size())
          time = std::max(time, 2 * output[j] / (rate * behind));
        min = std::min(min, time);
      }
    }
    return min;
  }
};

TEST_CASE("the published plan is the least of the recurrence on chains, flat and on two levels") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    const Small model = random_model(dice, 5, true, true);
    const Cluster cluster =
        seed % 2 == 0
            ? flat_cluster(static_cast<std::uint32_t>(dice.roll(1, 5)),
                           {Duration{}, BytesPerSecond{dice.roll(1, 30) * 1'000'000'000}})
            : two_levels(
                  static_cast<std::uint32_t>(dice.roll(1, 3)), dice.roll(1, 30) * 1'000'000'000,
                  static_cast<std::uint32_t>(dice.roll(1, 3)), dice.roll(1, 30) * 1'000'000'000);
    PlannerInput input{.graph = model.graph,
                       .costs = model.costs,
                       .cluster = cluster,
                       .cost_model = CostModel::published};
    input.activation_transfers = dice.roll(0, 2) > 0;
    input.straight = dice.roll(0, 4) == 0 && cluster.device_count() <= 5;
    std::vector<double> compute, parameters, output;
    double c = 0, p = 0;
    for (std::uint32_t i = 0; i < model.graph.size(); ++i) {
      c += seconds(model.costs[i].forward.mean + model.costs[i].backward.mean);
      p += static_cast<double>(model.graph.layer({i}).parameters.count);
      compute.push_back(c);
      parameters.push_back(p);
      output.push_back(static_cast<double>(model.costs[i].output.count));
    }
    const auto levels = published_levels(cluster, cluster.device_count());
    const PublishedBrute brute{
        compute, parameters, output, levels, input.activation_transfers, input.straight};
    const double min = brute.best(levels.size() - 1, 0, compute.size() - 1, levels.back().machines);
    if (min == kNever) continue;  // straight, and more machines than states
    const auto plans = plan(input);
    REQUIRE(plans);
    CHECK(plans->best[0].period_s == test::close_to(min, 1e-10));
    check_sound(input, plans->best[0]);
  }
}

TEST_CASE("the published plan is the least over all cuts of a graph with one source") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    const Small model = random_model(dice, 6, false, true);
    const Cluster cluster =
        flat_cluster(3, {Duration{}, BytesPerSecond{dice.roll(1, 30) * 1'000'000'000}});
    const PlannerInput input{.graph = model.graph,
                             .costs = model.costs,
                             .cluster = cluster,
                             .cost_model = CostModel::published,
                             .activation_transfers = false};
    const double rate = static_cast<double>(cluster.levels[0].link.bandwidth->count);
    const auto stage = [&](std::uint32_t set, std::uint32_t m) {
      double c = 0, p = 0;
      for (std::uint32_t i = 0; i < model.graph.size(); ++i) {
        if ((set >> i & 1U) == 0) continue;
        c += seconds(model.costs[i].forward.mean + model.costs[i].backward.mean);
        p += static_cast<double>(model.graph.layer({i}).parameters.count);
      }
      return (c + 4.0 * (m - 1) * p / (rate * m)) / m;
    };
    const auto sets = executed_sets(model.graph);
    std::map<std::pair<std::uint32_t, std::uint32_t>, double> known;
    const std::function<double(std::uint32_t, std::uint32_t)> min = [&](std::uint32_t set,
                                                                        std::uint32_t m) {
      const auto found = known.find({set, m});
      if (found != known.end()) return found->second;
      double best = stage(set, m);
      for (const std::uint32_t before : sets) {
        if (before == 0 || before == set || (before & ~set) != 0) continue;
        for (std::uint32_t behind = 1; behind < m; ++behind)
          best = std::min(best, std::max(min(before, m - behind), stage(set & ~before, behind)));
      }
      return known[{set, m}] = best;
    };
    const auto plans = plan(input);
    REQUIRE(plans);
    CHECK(plans->best[0].period_s ==
          test::close_to(min((1U << model.graph.size()) - 1, 3)).epsilon(1e-10));
    check_sound(input, plans->best[0]);
  }
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

/// `width` branches of `length` layers between a first and a last one.
Small branches(std::uint32_t width, std::uint32_t length) {
  Small model;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  model.add(10, 20, 100, 10);
  const std::uint32_t last = width * length + 1;
  for (std::uint32_t b = 0; b < width; ++b) {
    for (std::uint32_t i = 0; i < length; ++i) {
      const std::uint32_t layer = 1 + b * length + i;
      model.add(10, 20, 100, 10);
      edges.emplace_back(i == 0 ? 0 : layer - 1, layer);
    }
    edges.emplace_back(1 + b * length + length - 1, last);
  }
  model.add(10, 20, 100, 10);
  model.connect(edges);
  return model;
}

TEST_CASE("above 20,000 frontiers the cuts are those of one order, and the plan says so") {
  const Small few = branches(3, 4);
  // Nothing, the first, (4 + 1)^3 states of the branches less their start, the last.
  CHECK(all_frontiers(few.graph, few.costs, {}).size() == 125 + 2);
  const Small many = branches(5, 7);
  const Frontiers frontiers = all_frontiers(many.graph, many.costs, {});
  CHECK(frontiers.restricted);
  CHECK(frontiers.totally_ordered);
  CHECK(frontiers.size() == many.graph.size() + 1);
  const Cluster cluster = flat_cluster(4, {Duration{}, BytesPerSecond{1'000'000'000'000}});
  const PlannerInput input{.graph = many.graph, .costs = many.costs, .cluster = cluster};
  const auto plans = plan(input);
  REQUIRE(plans);
  CHECK(plans->restricted);
  check_sound(input, plans->best[0]);
}

TEST_CASE("free layers go with their producers: such cuts cannot pay") {
  Small model;  // 0 -> view 1 -> 2, and a free layer that makes more than it takes
  model.add(10, 10, 100, 0);
  model.add(0, 0, 100, 0);
  model.add(10, 10, 100, 0);
  model.add(0, 0, 300, 0);
  model.add(10, 10, 100, 0);
  model.connect({{0, 1}, {1, 2}, {2, 3}, {3, 4}});
  const Frontiers frontiers = all_frontiers(model.graph, model.costs, {});
  CHECK(frontiers.size() == 5);  // nothing, 0-1, -2, -3, all
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

TEST_CASE("the published cost model gives the original program's values on its profiles") {
  const char* const folder = std::getenv("PLUMBLINE_PROFILES");
  if (folder == nullptr) {
    MESSAGE("skipped: PLUMBLINE_PROFILES names no folder with PipeDream's profiles");
    return;
  }
  struct Value {
    const char* profile;
    std::vector<std::pair<std::uint32_t, double>> levels;
    bool transfers;
    double seconds, tolerance;
    const char* config;  ///< "" = a tie decides.
  };
  // PipeDream at commit 7db6a1c, -n, -b, with --activation_compression_ratio 1 where transfers.
  const std::vector<Value> values = {
      {"vgg16", {{4, 1e9}}, true, 0.205520896, 1e-9, "3-1"},
      {"vgg16", {{8, 25e9}}, true, 0.089028926811, 1e-9, "7-1"},
      {"alexnet", {{4, 1e9}}, true, 0.034217141333, 1e-9, "3-1"},
      {"gnmt", {{4, 1e9}}, true, 0.025868, 1e-9, "1-1-1-1"},
      {"gnmt", {{16, 1e9}}, true, 0.019285, 1e-6, ""},
      {"resnet50", {{4, 1e9}}, true, 0.162880924, 1e-9, "2-2"},
      {"resnet18", {{4, 1e9}}, true, 0.100004, 1e-6, "4"},
      {"vgg16", {{4, 12e9}, {4, 1.25e9}}, true, 0.066889, 1e-6, ""},
      {"vgg16", {{16, 1.25e9}}, true, 0.0548, 1e-4, ""},
      {"vgg16", {{8, 25e9}, {2, 3.125e9}}, true, 0.0658, 1e-4, ""},
      {"vgg16", {{16, 3.125e9}}, true, 0.0455, 1e-4, ""},
      {"vgg16", {{4, 12e9}, {4, 1.25e9}}, false, 0.0440, 1e-4, ""},
      {"vgg16", {{16, 1e9}}, false, 0.0474, 1e-4, ""},
      {"vgg16", {{4, 1e9}}, false, 0.175733, 1e-6, "3-1"},
      {"resnet50", {{4, 1e9}}, false, 0.111497, 1e-6, "1-1-1-1"},
      {"resnet50", {{16, 1e9}}, true, 0.047801345306, 1e-9, "7-6-3"},
  };
  for (const Value& value : values) {
    CAPTURE(value.profile);
    const auto model =
        read_pipedream_graph(std::string(folder) + "/" + value.profile + "/graph.txt");
    REQUIRE(model);
    Cluster cluster;
    for (const auto& [machines, rate] : value.levels) {
      cluster.levels.push_back(
          {"", machines, {Duration{}, BytesPerSecond{static_cast<std::int64_t>(rate)}}});
    }
    const PlannerInput input{.graph = model->graph,
                             .costs = model->profile.measurements[0].layers,
                             .cluster = cluster,
                             .cost_model = CostModel::published,
                             .activation_transfers = value.transfers};
    const auto plans = plan(input);
    REQUIRE(plans);
    CHECK(std::abs(plans->best[0].period_s - value.seconds) <= value.tolerance);
    if (*value.config != '\0') CHECK(plans->best[0].config() == value.config);
    check_sound(input, plans->best[0]);
  }
}

TEST_CASE("uncompressed states are those of the original program") {
  const char* const folder = std::getenv("PLUMBLINE_PROFILES");
  if (folder == nullptr) {
    MESSAGE("skipped: PLUMBLINE_PROFILES names no folder with PipeDream's profiles");
    return;
  }
  const std::vector<std::pair<const char*, std::uint32_t>> states = {
      {"alexnet", 22},    {"vgg16", 40},        {"resnet18", 100},    {"resnet50", 240},
      {"resnet101", 410}, {"resnext50", 240},   {"resnext101", 410},  {"densenet121", 430},
      {"gnmt", 99},       {"gnmt_large", 1495}, {"squeezenet1_0", 99}};
  for (const auto& [profile, count] : states) {
    const std::string file = std::string(folder) + "/" + profile + "/graph.txt";
    CAPTURE(file);
    const auto model = read_pipedream_graph(file);
    REQUIRE(model);
    const auto found =
        published_frontiers(model->graph, model->profile.measurements[0].layers, kMaxFrontiers);
    CHECK(found.frontiers.size() == count);
    CHECK(!found.frontiers.restricted);
  }
}

}  // namespace
}  // namespace plumbline
