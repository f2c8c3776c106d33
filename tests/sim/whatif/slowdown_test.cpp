// Neighbours that slow each other down: by hand, against a plain reference, and through a scenario.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "models/profile/profile_reader.h"
#include "sim/planning/predict.h"
#include "sim/whatif/sensitivity.h"
#include "tests/support/close_to.h"
#include "tests/support/profile_file.h"
#include "tests/support/random_pipeline.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// Every op of the graph takes these factors; all devices are on one machine.
OpGraph slowed(OpGraph graph, const std::vector<double>& factors) {
  graph.slowdowns.push_back(factors);
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    if (is_compute(graph.activities[node].kind)) graph.costs[graph.nodes[node].cost].slowdown = 1;
  }
  return graph;
}

// ---- the same in plain loops, with time as a real number ----

enum class State : std::uint8_t { waits, runs, travels, done };

/// Looks at every node again after every step. No queue, no versions, no integers.
class PlainRun {
 public:
  explicit PlainRun(const OpGraph& graph)
      : graph_(graph),
        state_(graph.size(), State::waits),
        left_(graph.size(), 0),
        end_(graph.size(), 0) {}

  std::vector<double> ends() {
    double time = 0;
    while (start_all()) {
      double step = INFINITY;
      for (std::uint32_t i = 0; i < graph_.size(); ++i) {
        if (state_[i] == State::runs) step = std::min(step, left_[i] * factor(i));
        if (state_[i] == State::travels) step = std::min(step, left_[i]);
      }
      std::vector<double> factors(graph_.size(), 1);
      for (std::uint32_t i = 0; i < graph_.size(); ++i) factors[i] = factor(i);
      time += step;
      for (std::uint32_t i = 0; i < graph_.size(); ++i) {
        if (state_[i] != State::runs && state_[i] != State::travels) continue;
        left_[i] -= step / (state_[i] == State::runs ? factors[i] : 1);
        if (left_[i] > 1e-6) continue;
        if (state_[i] == State::runs) {
          state_[i] = State::travels;
          left_[i] = static_cast<double>(graph_.cost(i).latency.count());
        }
        if (left_[i] <= 1e-6) {
          state_[i] = State::done;
          end_[i] = time;
        }
      }
    }
    return end_;
  }

 private:
  bool holds(std::uint32_t node, std::uint32_t resource) const {
    return graph_.nodes[node].resource == resource || graph_.nodes[node].peer_resource == resource;
  }

  bool can_start(std::uint32_t node) const {
    const Node& n = graph_.nodes[node];
    if (n.input != graph_.size() && state_[n.input] != State::done) return false;
    for (const Join& join : graph_.joins) {
      if (join.node != node) continue;
      for (const std::uint32_t producer : join.inputs) {
        if (state_[producer] != State::done) return false;
      }
    }
    for (std::uint32_t earlier = 0; earlier < node; ++earlier) {
      const bool busy = state_[earlier] == State::waits || state_[earlier] == State::runs;
      if (busy && (holds(earlier, n.resource) || holds(earlier, n.peer_resource))) return false;
    }
    return true;
  }

  /// Whether anything is under way then.
  bool start_all() {
    bool any = false;
    for (std::uint32_t i = 0; i < graph_.size(); ++i) {
      if (state_[i] == State::waits && can_start(i)) {
        state_[i] = State::runs;
        left_[i] = static_cast<double>(graph_.cost(i).hold.count());
      }
      any = any || state_[i] == State::runs || state_[i] == State::travels;
    }
    return any;
  }

  bool computes(std::uint32_t node) const {
    return state_[node] == State::runs && is_compute(graph_.activities[node].kind) &&
           graph_.cost(node).hold.count() > 0;
  }

  double factor(std::uint32_t node) const {
    if (state_[node] == State::runs && is_transfer(graph_.activities[node].kind))
      return factor_of_transfer(node);
    const auto& factors = graph_.slowdowns[graph_.cost(node).slowdown];
    if (!computes(node)) return 1;
    std::size_t others = 0;
    std::size_t updates = 0;
    for (std::uint32_t i = 0; i < graph_.size(); ++i) {
      if (i == node || !computes(i) ||
          graph_.machines[graph_.nodes[i].resource] != graph_.machines[graph_.nodes[node].resource])
        continue;
      ++others;
      if (is_update(i)) ++updates;
    }
    double factor = factors.empty() ? 1 : factors[std::min(others, factors.size() - 1)];
    const auto& more = graph_.updates_at_once;
    if (is_update(node) && !more.empty()) factor *= more[std::min(updates, more.size() - 1)];
    return factor;
  }

  double factor_of_transfer(std::uint32_t node) const {
    const auto& factors = graph_.beside_work[graph_.cost(node).beside_work];
    if (factors.empty()) return 1;
    const std::uint32_t from = graph_.sender(node);
    std::size_t others = 0;
    for (std::uint32_t i = 0; i < graph_.size(); ++i) {
      const std::uint32_t on = graph_.nodes[i].resource;
      if (computes(i) && on != from && on != graph_.receiver(node) &&
          graph_.machines[on] == graph_.machines[from])
        ++others;
    }
    return factors[std::min(others, factors.size() - 1)];
  }

  bool is_update(std::uint32_t node) const {
    return graph_.activities[node].kind == ActivityKind::update;
  }

  const OpGraph& graph_;
  std::vector<State> state_;
  std::vector<double> left_;
  std::vector<double> end_;
};

TEST_CASE("the engine takes the pace that a plain simulation in real numbers takes") {
  std::size_t changed = 0;
  std::size_t compared = 0;
  std::size_t slow_transfers = 0;
  for (std::uint64_t seed = 1; compared < trials(150); ++seed) {
    TestPipeline pipeline = random_pipeline(seed);
    for (auto* times : {&pipeline.forward, &pipeline.backward}) {
      for (Duration& time : *times) time *= 1000;
    }
    pipeline.update *= 1000;
    OpGraph graph = graph_of(pipeline);
    if (graph.size() > 400) continue;
    ++compared;
    CAPTURE(seed);
    const Duration before = makespan(graph, simulate(graph));
    Dice dice(seed);
    for (int list = 0; list < 3; ++list) {
      auto& factors = graph.slowdowns.emplace_back();
      for (std::int64_t k = dice.roll(1, 4); k > 0; --k)
        factors.push_back(0.5 + 0.01 * static_cast<double>(dice.roll(0, 200)));
    }
    for (std::uint32_t node = 0; node < graph.size(); ++node) {
      if (is_compute(graph.activities[node].kind))
        graph.costs[graph.nodes[node].cost].slowdown = graph.nodes[node].cost % 4;
    }
    for (std::uint32_t& machine : graph.machines)
      machine = static_cast<std::uint32_t>(dice.roll(0, 1));
    // Some transfers, with a number of factors that may be less than that of the devices.
    const std::size_t ops = graph.costs.size();
    if (dice.roll(0, 2) > 0) {
      auto& factors = graph.beside_work.emplace_back();
      for (std::int64_t k = dice.roll(1, 4); k > 0; --k)
        factors.push_back(0.5 + 0.01 * static_cast<double>(dice.roll(0, 400)));
    }
    for (std::uint32_t node = 0; node < graph.size() && graph.beside_work.size() > 1; ++node) {
      if (!is_transfer(graph.activities[node].kind) || node % 3 == 0) continue;
      Cost cost = graph.cost(node);
      cost.beside_work = 1;
      graph.nodes[node].cost = static_cast<std::uint32_t>(graph.costs.size());
      graph.costs.push_back(cost);
    }
    slow_transfers += graph.costs.size() - ops;
    if (dice.roll(0, 1) == 1) graph.updates_at_once = {1, 1.3, 1.5};
    const std::vector<double> plain = PlainRun(graph).ends();
    const Trace trace = simulate(graph);
    double worst = 0;
    for (std::uint32_t node = 0; node < graph.size(); ++node) {
      const auto end = static_cast<double>(trace.spans[node].end.time_since_epoch().count());
      worst = std::max(worst, std::abs(end - plain[node]));
    }
    CHECK(worst < 0.5 * graph.size() + 1);  // each end is rounded to the ns
    changed += makespan(graph, trace) != before ? 1 : 0;
  }
  CHECK(changed > trials(100));
  CHECK(slow_transfers > trials(1000));
}

TEST_CASE("by hand: one op at a time, all at all times, and a neighbour that comes in between") {
  TestPipeline pipeline = equal_pipeline(2, nanoseconds(100), nanoseconds(200));
  pipeline.micro_batches = 2;
  pipeline.schedule = "naive";  // its devices take turns
  CHECK(makespan_of(pipeline) == nanoseconds(1200));
  OpGraph graph = slowed(graph_of(pipeline), {0.9, 7});
  CHECK(makespan(graph, simulate(graph)) == nanoseconds(1080));
  // GPipe: F0 alone to 100, F1 beside F0 of stage 1 to 300, F1 of stage 1 alone to 400; then B.
  pipeline.schedule = "gpipe";
  graph = slowed(graph_of(pipeline), {1, 2});
  CHECK(makespan(graph, simulate(graph)) == nanoseconds(400 + 200 + 400 + 200));
  // Stage 1 is half as long: F0 of it runs at half pace beside 0F1 and ends at 200, when 0F1 has 50
  // left, which it does alone.
  pipeline.forward[1] = nanoseconds(50);
  graph = slowed(graph_of(pipeline), {1, 2});
  const Trace trace = simulate(graph);
  std::vector<Duration> ends;
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    if (graph.activities[node].kind == ActivityKind::forward)
      ends.push_back(trace.spans[node].end.time_since_epoch());
  }
  std::sort(ends.begin(), ends.end());
  CHECK(ends == std::vector<Duration>{nanoseconds(100), nanoseconds(200), nanoseconds(250),
                                      nanoseconds(300)});
  // On machines of their own they are no neighbours.
  graph.machines = {0, 1};
  CHECK(makespan(graph, simulate(graph)) == makespan_of(pipeline));
}

TEST_CASE("updates behind a flush share what those among other passes have for themselves") {
  const TemporaryFolder folder;
  const auto time = [&](const std::string& slowdown, const std::string& schedule) {
    const std::string profile = folder.file("p.profile.yaml",
                                            "version: 1\nkind: profile\nbatch: 1\nlayers:\n"
                                            "  - {name: a, kind: linear, forward: 1 ms, backward: "
                                            "2 ms, update: 10 ms, parameters: 1 kB}\n"
                                            "  - {name: b, kind: linear, forward: 1 ms, backward: "
                                            "2 ms, update: 4 ms, parameters: 1 kB}\n"
                                            "slowdown: {" +
                                                slowdown + "}\n");
    const auto scenario =
        parse_scenario(std::make_shared<const Source>(
                           Source{"s.yaml",
                                  "version: 1\nmodel: {profile: " + profile + "}" +
                                      "\nplan: {partition: [1, 1]}\nschedule: {" + schedule +
                                      "}\ncluster: {devices: 2, slowdown: measured}\n",
                                  ""}),
                       {});
    REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
    const auto outcome = predict(*scenario);
    REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
    return round_up(outcome->iteration_time_s * 1e9);
  };
  const std::string one = "name: gpipe, micro_batches: 1";
  CHECK(time("", one) == milliseconds(6 + 10));
  // The shorter one takes 6 ms; until then 4 of 10 ms of the other are done, and 6 are left.
  CHECK(time("update: [1, 1.5]", one) == milliseconds(6 + 6 + 6));
  // The cost of neighbours of any kind is added: for 12 ms, in which 4 of 10 ms are done.
  CHECK(time("linear: [1, 2], update: [1, 1.5]", one) == milliseconds(6 + 12 + 6));
}

TEST_CASE("a list that ends early goes on with its last factor, and zero takes no time") {
  TestPipeline pipeline = equal_pipeline(3, nanoseconds(100), nanoseconds(100));
  pipeline.schedule = "gpipe";
  pipeline.micro_batches = 9;
  const OpGraph bare = graph_of(pipeline);
  const OpGraph graph = slowed(bare, {1.5});
  CHECK(makespan(graph, simulate(graph)) == makespan(bare, simulate(bare)) * 3 / 2);
  const OpGraph nothing = slowed(bare, {0, 0});
  CHECK(makespan(nothing, simulate(nothing)).count() == 0);
}

// ---- from a profile ----

constexpr const char* kTwoKinds =
    "version: 1\nkind: profile\nbatch: 1\n"
    "layers:\n"
    "  - {name: a, kind: linear, forward: 1 ms, backward: 2 ms, update: 1 ms}\n"
    "  - {name: b, kind: gelu, forward: 1 ms, backward: 2 ms}\n"
    "  - {name: c, kind: linear, forward: 2 ms, backward: 4 ms, update: 1 ms}\n"
    "slowdown: {linear: [0.8, 1.0, 1.3]}\n";

TEST_CASE("a stage's ops take the mix of their layers' kinds, overheads apart") {
  const ProfileFile profile(kTwoKinds);
  const std::string plan = "plan: {partition: [2, 1]}\n";
  // One at a time: a alone takes 0.8, b 1 whatever happens.
  const Outcome naive =
      profile.predict("cluster: {devices: 2}\nschedule: {name: naive, micro_batches: 1}\n" + plan);
  CHECK(naive.metrics.makespan == nanoseconds(1'800'000 + 1'600'000 + 3'200'000 + 3'600'000 +
                                              1'000'000));  // both updates side by side: factor 1
  CHECK(!naive.formula);
  CHECK(naive.graph.rates_change());
  const Outcome none = profile.predict(
      "cluster: {devices: 2, slowdown: none}\nschedule: {name: gpipe, micro_batches: 4}\n" + plan);
  CHECK(!none.graph.rates_change());
  CHECK(none.setup.costs.stages[0].forward == nanoseconds(1'800'000));
  CHECK(none.setup.costs.stages[1].backward == nanoseconds(3'200'000));
  // The runner's own time per op is not slowed down.
  const Outcome late = profile.predict(
      "cluster: {devices: 2}\nschedule: {name: naive, micro_batches: 1}\n"
      "overhead: {per_op: 100 us}\n" +
      plan);
  CHECK(late.metrics.makespan == naive.metrics.makespan + nanoseconds(5 * 100'000));
  // The backward that recomputes is its forward and itself.
  const Outcome again = profile.predict(
      "cluster: {devices: 2}\nschedule: {name: naive, micro_batches: 1, recompute: full}\n" + plan);
  CHECK(again.metrics.makespan == naive.metrics.makespan + nanoseconds(1'800'000 + 1'600'000));
}

TEST_CASE("the parts of an op are slowed as the whole is, and each has a launch of its own") {
  const ProfileFile profile(
      "version: 1\nkind: profile\nbatch: 1\nlayers:\n"
      "  - {name: a, kind: linear, forward: 1 ms, backward: 2 ms, parameters: 1 MB}\n"
      "  - {name: b, kind: gelu, forward: 1 ms, backward: 3 ms, parameters: 1 MB}\n"
      "slowdown: {linear: [0.8, 1.0, 1.3]}\n");
  for (const int per_op : {0, 100'000}) {
    CAPTURE(per_op);
    const Outcome outcome = profile.predict(fmt::format(
        "cluster: {{devices: 2}}\nschedule: {{name: data-parallel, micro_batches: 1, bucket: 1 MB}}"
        "\noverhead: {{per_op: {} ns}}\n",
        per_op));
    const OpGraph& graph = outcome.graph;
    const auto slowed = [&](const Cost& cost, std::size_t neighbours) {
      const std::vector<double>& factors = graph.slowdowns[cost.slowdown];
      return static_cast<double>(cost.hold.count()) * factors.at(neighbours);
    };
    const Cost& whole = graph.costs[static_cast<std::size_t>(OpKind::backward)];
    CHECK(whole.hold == nanoseconds(5'000'000 + per_op));
    for (std::size_t neighbours = 0; neighbours < 3; ++neighbours) {
      CAPTURE(neighbours);
      double parts = 0;
      for (std::uint32_t node = 0; node < graph.size(); ++node) {
        const bool first = graph.nodes[node].resource == 0;
        if (first && op_of(graph.activities[node].kind) == ActivityKind::backward)
          parts += slowed(graph.cost(node), neighbours);
      }
      CHECK(parts == close_to(slowed(whole, neighbours) + per_op, 1e-12));
    }
  }
}

TEST_CASE("an op takes what it takes with as many micro-batches in flight as its stage has") {
  const std::string layers =
      "version: 1\nkind: profile\nbatch: 1\n"
      "layers:\n"
      "  - {name: a, kind: linear, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms}\n"
      "  - {name: b, kind: gelu, forward: 1 ms, backward_input: 2 ms, backward_weight: 0 ms}\n"
      "  - {name: c, kind: linear, forward: 2 ms, backward: 4 ms, update: 1 ms}\n";
  const ProfileFile profile(layers + "in_flight: {linear: [0.8, 0.9, 1.1]}\n");
  const auto costs = [](const ProfileFile& file, const std::string& cluster,
                        const std::string& schedule) {
    return file
        .predict("cluster: {" + cluster + "}\nplan: {partition: [2, 1]}\nschedule: {name: " +
                 schedule + ", micro_batches: 4}\n")
        .setup.costs;
  };
  // Devices that share nothing: all of it, whoever else works.
  const std::string apart = "devices: 2, slowdown: none";
  const auto naive = costs(profile, apart, "naive").stages;
  CHECK(naive[0].forward == nanoseconds(1'800'000));
  CHECK(naive[0].backward == nanoseconds(3'600'000));
  CHECK(naive[1].forward == nanoseconds(1'600'000));
  CHECK(naive[1].backward == nanoseconds(3'200'000));
  CHECK(naive[1].update == milliseconds(1));
  const auto one = costs(profile, apart, "1f1b").stages;
  CHECK(one[0].forward == nanoseconds(1'900'000));
  CHECK(one[1].forward == nanoseconds(1'600'000));
  // The last factor holds for all more.
  const auto gpipe = costs(profile, apart, "gpipe");
  CHECK(gpipe.stages[0].forward == nanoseconds(2'100'000));
  CHECK(gpipe.stages[1].backward == nanoseconds(4'400'000));
  CHECK(gpipe.slowdowns.empty());
  // Where all is made again a device has the activations of one micro-batch at a time.
  for (const char* recompute : {"full", "layers"}) {
    const auto again = costs(profile, apart, std::string("gpipe, recompute: ") + recompute);
    CHECK(again.stages[0].forward == nanoseconds(1'800'000));
    CHECK(again.stages[0].backward == nanoseconds(3'600'000));
  }
  const auto kept = costs(profile, apart, "gpipe, recompute: layers, recompute_layers: 1");
  CHECK(kept.stages[0].forward == nanoseconds(2'100'000));

  // Neighbours: none of it while they rest.
  const auto is = [](const std::vector<double>& times, const std::vector<double>& wanted) {
    REQUIRE(times.size() == wanted.size());
    for (std::size_t k = 0; k < times.size(); ++k) CHECK(times[k] == close_to(wanted[k] * 1e6));
  };
  const auto beside = costs(profile, "devices: 2", "1f1b");
  CHECK(beside.stages[0].forward == milliseconds(2));
  REQUIRE(beside.slowdowns.size() == 2);
  is(beside.slowdowns[0].forward, {2, 1.9});
  is(beside.slowdowns[0].backward_weight, {1, 0.9});
  is(beside.slowdowns[1].backward, {4, 3.2});
  is(beside.slowdowns[1].update, {1, 1});
  const ProfileFile both(layers +
                         "in_flight: {linear: [0.8, 0.9, 1]}\nslowdown: {linear: [0.5, 1]}\n");
  const auto of_both = costs(both, "devices: 2", "1f1b").slowdowns;
  is(of_both[1].forward, {1, 1.6});
  is(of_both[1].update, {0.5, 1});
  const auto as_measured = costs(both, "devices: 2", "gpipe").slowdowns;
  is(as_measured[1].forward, {1, 2});
  const ProfileFile without(layers);
  CHECK(costs(without, "devices: 2", "1f1b").slowdowns.empty());

  // Servers of one device each: nobody is a neighbour.
  const auto alone =
      costs(profile, "levels: [{name: server, size: 1}, {name: rack, size: 2}]", "1f1b");
  CHECK(alone.stages[1].forward == nanoseconds(1'600'000));
  CHECK(alone.slowdowns.empty());
  // A profile of one device on two, which are neighbours all the same.
  const ProfileFile of_one(layers + "in_flight: {linear: [0.8, 1]}\n");
  is(costs(of_one, "devices: 2", "1f1b").slowdowns[1].forward, {2, 1.6});
  // Copies of a pipeline are neighbours, too.
  const Outcome copies = profile.predict(
      "cluster: {devices: 4}\nplan: {partition: [2, 1], data_parallel: 2}\n"
      "schedule: {name: 1f1b, micro_batches: 4}\n");
  is(copies.setup.costs.slowdowns[1].backward, {4, 4 - 0.8 / 3, 4 - 1.6 / 3, 3.2});
}

TEST_CASE("only devices of one server are neighbours") {
  const ProfileFile profile(kTwoKinds);
  const std::string rest = "schedule: {name: data-parallel, micro_batches: 1}\n";
  const auto time = [&](const std::string& levels) {
    return profile.predict("cluster: {levels: [" + levels + "]}\n" + rest).metrics.makespan;
  };
  const Duration of_b = milliseconds(3);
  const Duration alone = of_b + nanoseconds(11 * 800'000);
  const Duration beside_one = of_b + nanoseconds(11 * 1'000'000);
  const Duration beside_three = of_b + nanoseconds(11 * 1'300'000);
  CHECK(time("{name: server, size: 1}, {name: rack, size: 4}") == alone);
  CHECK(time("{name: server, size: 2}, {name: rack, size: 2}") == beside_one);
  CHECK(time("{name: server, size: 4}") == beside_three);
}

TEST_CASE("levers are changes in a simulation where neighbours matter, off the path too") {
  const ProfileFile profile(kTwoKinds);
  const Outcome outcome = profile.predict(
      "cluster: {devices: 2}\nschedule: {name: 1f1b, micro_batches: 4}\nplan: {partition: [2, "
      "1]}\n");
  const Sensitivities found = sensitivities(outcome);
  CHECK(!found.exact);
  for (const Sensitivity& sensitivity : found.all) CHECK(!sensitivity.until);
  // Sampled runs go the same way: without spread they are the run itself.
  const Outcome sampled = profile.predict(
      "cluster: {devices: 2}\nschedule: {name: 1f1b, micro_batches: 4}\nplan: {partition: [2, 1]}\n"
      "noise: {spread: 0, samples: 5}\n");
  REQUIRE(sampled.uncertainty);
  for (const double time : sampled.uncertainty->iteration_times_s)
    CHECK(time == close_to(sampled.iteration_time_s));
}

}  // namespace
}  // namespace plumbline::test
