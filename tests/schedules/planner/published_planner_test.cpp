// The published cost model against its recurrence, and the values of the original program.
//
// SPDX-License-Identifier: MIT
#include "schedules/planner/published_planner.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/import/pipedream_graph.h"
#include "schedules/planner/planner.h"
#include "schedules/planner/published_frontiers.h"
#include "tests/schedules/planner/small_model.h"
#include "tests/support/close_to.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

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
}  // namespace plumbline::test
