// Versions by order, against a run that carries version numbers along.
//
// SPDX-License-Identifier: MIT
#include "schedules/order/weight_versions.h"

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "tests/support/builders.h"

namespace plumbline::test {
namespace {

using std::chrono::nanoseconds;

TestPipeline pipedream(const std::vector<std::uint32_t>& replicas, std::uint32_t micro_batches) {
  TestPipeline t =
      equal_pipeline(static_cast<std::uint32_t>(replicas.size()), nanoseconds(10), nanoseconds(20));
  t.schedule = "pipedream";
  t.replicas = replicas;
  t.micro_batches = micro_batches;
  return t;
}

TEST_CASE("stashing keeps p-s versions on stage s and applies gradients p-1-s updates late") {
  for (std::uint32_t p = 1; p <= 6; ++p) {
    const std::uint32_t n = 30;
    const auto stages =
        weight_versions(schedule_of(pipedream(std::vector<std::uint32_t>(p, 1), n)), {});
    for (std::uint32_t s = 0; s < p; ++s) {
      CAPTURE(p);
      CAPTURE(s);
      CHECK(stages[s].kept == p - s);
      for (std::uint32_t m = 0; m < n; ++m) {
        const VersionUse& use = stages[s].uses[m];
        CHECK(use.backward == use.forward);
        CHECK(use.applied_to == m);
        CHECK(use.staleness() == std::min(m, p - 1 - s));
      }
    }
  }
}

TEST_CASE("in words: micro-batch 7 on the first of four stages") {
  const auto stages = weight_versions(schedule_of(pipedream({1, 1, 1, 1}, 20)), {});
  CHECK(stages[0].uses[7] == VersionUse{4, 4, 7});
  CHECK(stages[3].uses[7] == VersionUse{7, 7, 7});
}

TEST_CASE(
    "vertical sync uses one version on all stages, p-1 updates late, and keeps p everywhere") {
  for (std::uint32_t p = 1; p <= 6; ++p) {
    const std::uint32_t n = 40;
    const auto stages = weight_versions(schedule_of(pipedream(std::vector<std::uint32_t>(p, 1), n)),
                                        {.weights = WeightRule::vertical_sync});
    for (std::uint32_t s = 0; s < p; ++s) {
      CAPTURE(p);
      CAPTURE(s);
      CHECK(stages[s].kept == p);
      for (std::uint32_t m = p; m < n; ++m) {
        CHECK(stages[s].uses[m].forward == stages[0].uses[m].forward);
        CHECK(stages[s].uses[m].backward == stages[0].uses[m].forward);
        CHECK(stages[s].uses[m].staleness() == p - 1);
      }
    }
  }
}

TEST_CASE("without stashing forward and backward see different versions, but on the last stage") {
  const auto stages =
      weight_versions(schedule_of(pipedream({1, 1, 1, 1}, 30)), {.weights = WeightRule::none});
  for (std::uint32_t s = 0; s < 4; ++s) {
    CHECK(stages[s].kept == 1);
    CHECK(stages[s].uses[20].backward - stages[s].uses[20].forward == 3 - s);
    CHECK(stages[s].uses[20].backward == 20);
  }
}

TEST_CASE("2BW keeps two versions and is one update late; too few micro-batches are told") {
  const UpdateRule rule{.weights = WeightRule::two, .accumulated = 4};
  const auto stages = weight_versions(schedule_of(pipedream({1, 1, 1, 1}, 40)), rule);
  for (const StageVersions& stage : stages) {
    CHECK(stage.kept == 2);
    CHECK(!stage.missing);
    for (std::uint32_t m = 4; m < 40; ++m) {
      CHECK(stage.uses[m].staleness() == 1);
      CHECK(stage.uses[m].backward == stage.uses[m].forward);
      CHECK(stage.uses[m].applied_to == m / 4);
    }
  }
  const auto shallow = weight_versions(schedule_of(pipedream({1, 1, 1, 1}, 40)),
                                       {.weights = WeightRule::two, .accumulated = 2});
  CHECK(shallow[0].missing.has_value());
}

TEST_CASE("a synchronous schedule has one version") {
  TestPipeline t = pipedream({1, 1, 1}, 8);
  t.schedule = "1f1b";
  for (const StageVersions& stage : weight_versions(schedule_of(t), {})) {
    CHECK(stage.kept == 1);
    CHECK(stage.uses[5] == VersionUse{});
  }
}

/// The real execution of a replica in a run: its stream, with a counter that each update
/// increments.
struct Executed {
  std::map<std::uint32_t, VersionUse> uses;
  std::uint32_t kept = 1;
};

Executed execute(const OpGraph& graph, const Trace& trace, std::uint32_t slot, WeightRule weights) {
  std::vector<std::uint32_t> nodes;
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    if (graph.nodes[i].resource == slot) nodes.push_back(i);
  }
  std::stable_sort(nodes.begin(), nodes.end(), [&](std::uint32_t a, std::uint32_t b) {
    return trace.spans[a].begin < trace.spans[b].begin;
  });
  Executed executed;
  std::uint32_t newest = 0;
  std::map<std::uint32_t, std::uint32_t> stashed;  // by micro-batch
  for (const std::uint32_t node : nodes) {
    const Activity& activity = graph.activities[node];
    const std::uint32_t m = activity.micro_batch.value;
    if (activity.kind == ActivityKind::forward) {
      executed.uses[m].forward = stashed[m] = newest;
    } else if (activity.kind == ActivityKind::backward) {
      executed.uses[m].backward = weights == WeightRule::none ? newest : stashed[m];
      stashed.erase(m);
    } else if (activity.kind == ActivityKind::update) {
      ++newest;
    }
    std::uint32_t oldest = newest;
    for (const auto& [micro_batch, version] : stashed) oldest = std::min(oldest, version);
    if (weights != WeightRule::none) executed.kept = std::max(executed.kept, newest - oldest + 1);
  }
  return executed;
}

TEST_CASE("versions by order equal those that a run carries along, on random replicas and times") {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Dice dice(seed);
    std::vector<std::uint32_t> replicas;
    const std::int64_t stages = dice.roll(1, 4);
    for (std::int64_t s = 0; s < stages; ++s)
      replicas.push_back(static_cast<std::uint32_t>(dice.roll(1, 4)));
    TestPipeline t = pipedream(replicas, static_cast<std::uint32_t>(dice.roll(1, 50)));
    for (std::size_t s = 0; s < t.forward.size(); ++s) {
      t.forward[s] = nanoseconds(dice.roll(1, 50));
      t.backward[s] = nanoseconds(dice.roll(1, 50));
    }
    t.update = nanoseconds(dice.roll(1, 5));
    t.link.latency = nanoseconds(dice.roll(0, 20));
    t.parameters = {1000};
    t.options.updates.weights = dice.roll(0, 2) == 0 ? WeightRule::none : WeightRule::stash;
    t.options.updates.lag = static_cast<std::uint32_t>(dice.roll(0, 1));
    const Schedule schedule = schedule_of(t);
    const auto graph = lower(schedule, costs_of(t), devices_in_use(one_layer_a_stage(t)),
                             flat_cluster(20, t.link), t.options, {});
    if (!graph) continue;  // lag 0 may deadlock
    const Trace trace = simulate(*graph);
    const auto by_order = weight_versions(schedule, t.options.updates);
    CAPTURE(seed);
    for (std::uint32_t s = 0; s < by_order.size(); ++s) {
      std::uint32_t kept = 1;
      for (const std::uint32_t slot : graph->stage_slots[s]) {
        const Executed executed = execute(*graph, trace, slot, t.options.updates.weights);
        kept = std::max(kept, executed.kept);
        for (const auto& [m, use] : executed.uses) {
          CHECK(by_order[s].uses[m].forward == use.forward);
          CHECK(by_order[s].uses[m].backward == use.backward);
          if (t.options.updates.weights == WeightRule::stash) CHECK(use.forward == use.backward);
        }
      }
      // Behind its last op a replica may still update, which needs no version any more.
      CHECK(by_order[s].kept == kept);
    }
  }
}

}  // namespace
}  // namespace plumbline::test
