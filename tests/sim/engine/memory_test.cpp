// Peak memory by hand.
//
// SPDX-License-Identifier: MIT
#include "sim/engine/memory.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "sim/engine/stage_memory.h"
#include "tests/support/builders.h"
#include "tests/support/random_pipeline.h"
#include "tests/support/trials.h"

namespace plumbline {
namespace {

using std::chrono::nanoseconds;

std::vector<DeviceMemory> memory_of(const test::TestPipeline& t, MemoryRules rules = {}) {
  const OpGraph graph = test::graph_of(t);
  rules.weight_versions.resize(t.forward.size(), 1);
  rules.recompute = t.options.recompute;
  const auto steps = memory_steps(graph, simulate(graph), test::costs_of(t),
                                  schedule_of(t).shape.positions, rules);
  return measure_memory(graph, test::costs_of(t), rules, steps);
}

test::TestPipeline pipeline(const std::string& schedule, std::uint32_t stages,
                            std::uint32_t micro_batches) {
  test::TestPipeline t = test::equal_pipeline(stages, nanoseconds(10), nanoseconds(20));
  t.schedule = schedule;
  t.micro_batches = micro_batches;
  t.activation = {100};
  t.output = {10};
  t.parameters = {1000};
  return t;
}

TEST_CASE(
    "micro-batches in flight: m for GPipe, min(m, p-s) for 1F1B, min(m, 2(p-s)-1) for eager 1F1B, "
    "1 for naive") {
  for (std::uint32_t p = 1; p <= 6; ++p) {
    for (std::uint32_t m = 1; m <= 12; ++m) {
      for (std::uint32_t s = 0; s < p; ++s) {
        CAPTURE(p);
        CAPTURE(m);
        CAPTURE(s);
        CHECK(memory_of(pipeline("gpipe", p, m))[s].peak_in_flight == m);
        CHECK(memory_of(pipeline("1f1b", p, m))[s].peak_in_flight == std::min(m, p - s));
        CHECK(memory_of(pipeline("eager-1f1b", p, m))[s].peak_in_flight ==
              std::min(m, 2 * (p - s) - 1));
        CHECK(memory_of(pipeline("naive", p, m))[s].peak_in_flight == 1);
        CHECK(memory_of(pipeline("delayed-backward", p, m))[s].peak_in_flight == std::min(m, 2U));
      }
    }
  }
}

TEST_CASE("the peak of 1F1B's first device is reached at its last warm-up forward") {
  test::TestPipeline t = pipeline("1f1b", 4, 8);
  t.output = {};
  t.activation = {};
  t.parameters = {};
  const auto memory = memory_of(t);
  CHECK(memory[0].peak.sum() == Bytes{0});
  CHECK(memory[0].peak_op == "0F3");
  CHECK(memory[3].peak_op == "3F0");
}

TEST_CASE("two stages, two micro-batches, GPipe: every part of the peak") {
  // Device 1 receives F0 (arrives at once, free link) and F1; B of stage 1 releases activation and
  // buffer.
  const auto memory =
      memory_of(pipeline("gpipe", 2, 2), {.optimizer_state = 2.0, .weight_versions = {3, 1}});
  CHECK(memory[0].peak.weights == Bytes{1000});
  CHECK(memory[0].peak.gradients == Bytes{1000});
  CHECK(memory[0].peak.optimizer == Bytes{2000});
  CHECK(memory[0].peak.stash == Bytes{2000});
  CHECK(memory[0].peak.activations == Bytes{200});
  CHECK(memory[0].peak.buffers == Bytes{10});  // one gradient at a time
  CHECK(memory[0].peak_op == "0B0");
  CHECK(memory[1].peak.activations == Bytes{200});
  CHECK(memory[1].peak.buffers == Bytes{20});
  CHECK(memory[1].peak_op == "1F1");
  CHECK(memory[1].peak.sum() == Bytes{1000 + 1000 + 2000 + 200 + 20});
}

TEST_CASE(
    "recomputation keeps inputs, holds outputs until they are sent, and one full set in the "
    "backward") {
  test::TestPipeline t = pipeline("gpipe", 2, 4);
  t.options.recompute = Recompute::full;
  const auto memory = memory_of(t);
  // Device 0: its own input counts nothing; in B it holds one set and the gradient that came for
  // it.
  CHECK(memory[0].peak.activations == Bytes{100});
  CHECK(memory[0].peak.buffers == Bytes{10});
  // Device 1: four inputs are kept, and one set exists in the first backward.
  CHECK(memory[1].peak.activations == Bytes{100});
  CHECK(memory[1].peak.buffers == Bytes{40});
  CHECK(memory[1].peak_op == "1B0");
  CHECK(makespan_of(t) == 5 * nanoseconds(10 + 30));
}

/// The peaks of a chain under GPipe, with so many layers in each stage.
std::vector<DeviceMemory> gpipe_peaks(const std::vector<LayerCosts>& costs,
                                      const std::vector<std::uint32_t>& sizes,
                                      const std::vector<std::vector<DeviceId>>& devices,
                                      std::uint32_t micro_batches, Recompute recompute) {
  std::vector<Layer> layers(costs.size());
  for (std::size_t i = 0; i < layers.size(); ++i) layers[i].name = "l" + std::to_string(i);
  const LayerGraph graph = LayerGraph::chain(std::move(layers));
  const Partition partition = make_partition(graph.topological_order(), sizes, devices);
  const StageCosts stages = stage_costs(graph, costs, partition);
  const PipelineShape shape = pipeline_shape(partition, micro_batches);
  const ScheduleRule& rule = *find_schedule_rule("gpipe");
  const auto made = generate(rule, shape, windows(rule, shape, std::nullopt), {});
  REQUIRE(made);
  const std::vector<DeviceId> used = devices_in_use(partition);
  RunRules options;
  options.recompute = recompute;
  const auto run = lower(*made, stages, used,
                         flat_cluster(static_cast<std::uint32_t>(used.size()), {}), options, {});
  REQUIRE(run);
  const MemoryRules rules{.recompute = recompute,
                          .weight_versions = std::vector<std::uint32_t>(sizes.size(), 1)};
  return measure_memory(*run, stages, rules,
                        memory_steps(*run, simulate(*run), stages, shape.positions, rules));
}

/// Two stages on devices 0 and 1: layers a, b, c on the first, d on the second, and d consumes b
/// and c.
struct Branching {
  std::vector<LayerCosts> costs;
  LayerGraph graph;
  Partition partition;

  StageCosts stages() const { return stage_costs(graph, costs, partition); }
};

Branching branching() {
  Branching b;
  const auto add = [&](const char* name, std::int64_t output, std::int64_t activation) {
    b.graph.add_layer({name, "", {}});
    LayerCosts& cost = b.costs.emplace_back();
    cost.forward.mean = nanoseconds(10);
    cost.backward.mean = nanoseconds(20);
    cost.output = {output};
    cost.activation = {activation};
  };
  add("a", 1, 100);
  add("b", 20, 50);
  add("c", 300, 400);
  add("d", 4, 70);
  b.graph.add_edges({{{0}, {1}}, {{1}, {2}}, {{1}, {3}}, {{2}, {3}}});
  b.partition.stages = {{{{0}, {1}, {2}}, {{0}}}, {{{3}}, {{1}}}};
  return b;
}

TEST_CASE("layer by layer: inputs that layers of the stage read are kept, the most is made again") {
  const StageCosts costs = branching().stages();
  // b reads a, c reads b: 1 + 20. Made again: a 99, b 30, c 400.
  CHECK(costs.checkpoints(0, 0).kept == Bytes{21});
  CHECK(costs.checkpoints(0, 0).again == Bytes{400});
  CHECK(costs.checkpoints(1, 1).kept == Bytes{0});
  CHECK(costs.checkpoints(1, 1).again == Bytes{70});
  const std::vector<Position> apart = {{0, 1}, {1, 1}};
  const auto stages = stage_memory(costs, apart, Recompute::layers);
  CHECK(stages[0].kept == Bytes{21});
  CHECK(stages[0].sent == Bytes{300});  // b is kept anyway
  CHECK(stages[0].again == Bytes{400});
  CHECK(stages[0].done == Bytes{421});
  CHECK(stages[0].recomputed_by_input == Bytes{529});
  CHECK(stages[0].done_by_weight == Bytes{550});
  CHECK(stages[1].received() == Bytes{320});
  CHECK(stage_memory(costs, apart, Recompute::full)[0].sent == Bytes{320});
  CHECK(stage_memory(costs, apart, Recompute::none)[0].sent == Bytes{0});
  // On one device: d reads b and c.
  const auto together = stage_memory(costs, {{0, 2}}, Recompute::layers);
  CHECK(together[0].kept == Bytes{321});
  CHECK(together[0].again == Bytes{100});  // c is kept for d, but for what it keeps besides
  CHECK(together[0].sent == Bytes{0});
  CHECK(together[1].sent == Bytes{0});
}

TEST_CASE(
    "layer by layer, stages that share a device hold no more than as one, and that no more than "
    "all") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    test::Dice dice(seed);
    const auto count = static_cast<std::uint32_t>(dice.roll(1, 6));
    std::vector<LayerCosts> costs(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      costs[i].forward.mean = nanoseconds(dice.roll(1, 9));
      costs[i].backward.mean = nanoseconds(dice.roll(1, 9));
      costs[i].activation = {dice.roll(0, 90)};
      costs[i].output = {dice.roll(0, costs[i].activation.count)};
    }
    const auto peak = [&](bool apart, Recompute recompute) {
      const std::vector<std::uint32_t> sizes =
          apart ? std::vector<std::uint32_t>(count, 1) : std::vector<std::uint32_t>{count};
      const std::vector<std::vector<DeviceId>> devices(sizes.size(), {{0}});
      return gpipe_peaks(costs, sizes, devices, 3, recompute)[0].peak.sum();
    };
    CHECK(peak(true, Recompute::layers) <= peak(false, Recompute::layers));
    CHECK(peak(false, Recompute::layers) <= peak(false, Recompute::none));
    CHECK(peak(true, Recompute::none) == peak(false, Recompute::none));
  }
}

TEST_CASE("a layer that keeps less than it hands on needs nothing more to be made again") {
  Checkpoints checkpoints;
  LayerCosts costs;
  costs.output = {10};
  costs.activation = {3};
  checkpoints.add(costs, /*is_input=*/true);
  CHECK(checkpoints.kept == Bytes{10});
  CHECK(checkpoints.again == Bytes{0});
}

TEST_CASE("layer by layer, every part of the peak, by hand, beside both other ways") {
  // Four layers a stage: each keeps 100, of which 10 go on.
  std::vector<LayerCosts> costs(8);
  for (LayerCosts& cost : costs) {
    cost.forward.mean = nanoseconds(10);
    cost.backward.mean = nanoseconds(20);
    cost.output = {10};
    cost.activation = {100};
  }
  const auto peaks = [&](Recompute recompute, std::uint32_t micro_batches) {
    return gpipe_peaks(costs, {4, 4}, {{{0}}, {{1}}}, micro_batches, recompute);
  };
  // Device 0: three inputs of layers for each of six micro-batches, the last layer's activation
  // made again, one gradient received. Device 1: six inputs of the stage.
  const auto layers = peaks(Recompute::layers, 6);
  CHECK(layers[0].peak.activations == Bytes{6 * 30 + 100});
  CHECK(layers[0].peak.buffers == Bytes{10});
  CHECK(layers[1].peak.activations == Bytes{6 * 30 + 100});
  CHECK(layers[1].peak.buffers == Bytes{6 * 10});
  CHECK(layers[1].peak_op == "1B0");
  CHECK(peaks(Recompute::full, 6)[1].peak.sum() == Bytes{400 + 60});
  CHECK(peaks(Recompute::none, 6)[1].peak.sum() == Bytes{2400 + 60});
  // With many in flight the inputs of layers are more than one stage's activations.
  CHECK(peaks(Recompute::layers, 20)[1].peak.sum() > peaks(Recompute::full, 20)[1].peak.sum());
}

TEST_CASE("a slow link makes outputs of recomputed stages wait in memory") {
  test::TestPipeline t = pipeline("gpipe", 2, 4);
  t.options.recompute = Recompute::full;
  t.activation = {1};
  t.link.bandwidth = BytesPerSecond{100'000'000};  // 10 B take 100 ns
  CHECK(memory_of(t)[0].peak.buffers == Bytes{40});
}

TEST_CASE(
    "stages that share a device count one micro-batch once, and pass tensors without a buffer") {
  test::TestPipeline t = pipeline("1f1b", 3, 4);
  t.devices = {{0}, {0}, {1}};
  const auto memory = memory_of(t);
  CHECK(memory[0].peak_in_flight == 2);
  CHECK(memory[0].peak.activations == Bytes{400});
  CHECK(memory[0].peak.buffers == Bytes{10});
}

TEST_CASE("ops that take no time hold their memory all the same, one micro-batch after the other") {
  test::TestPipeline t = pipeline("1f1b", 2, 4);
  t.forward[1] = t.backward[1] = {};
  const auto memory = memory_of(t);
  CHECK(memory[1].peak_in_flight == 1);
  CHECK(memory[1].peak.activations == Bytes{100});
  CHECK(memory[1].peak.buffers == Bytes{10});
  t.forward[0] = t.backward[0] = {};
  CHECK(memory_of(t)[0].peak_in_flight == 2);
}

/// memory_steps() of one slot made the plain way: every change, sorted.
std::vector<MemoryStep> sorted_steps(const OpGraph& graph, const Trace& trace,
                                     const std::vector<StageMemory>& stages, std::uint32_t slot,
                                     TieOrder ties) {
  struct Change {
    SimTime at;
    bool released_first = false;
    std::uint32_t node = 0;
    Bytes activations, buffers;
    int in_flight = 0;
  };
  const std::vector<std::uint32_t> firsts = first_parts(graph);
  std::vector<Change> changes;
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    const Activity& activity = graph.activities[node];
    if (!is_op(activity.kind) && !is_transfer(activity.kind)) continue;
    const Span& span = trace.spans[node];
    const SimTime begin = trace.spans[firsts[node]].begin;
    const StageMemory& memory = stages[activity.stage.value];
    if (activity.kind == ActivityKind::activation_transfer && graph.sender(node) == slot) {
      const Bytes sent = stages[activity.stage.value - 1].sent;
      const SimTime made = trace.spans[firsts[graph.nodes[node].input]].begin;
      if (sent != Bytes{}) changes.push_back({span.end, made < span.end, node, {}, Bytes{} - sent});
    }
    if (graph.receiver(node) != slot) continue;
    if (is_transfer(activity.kind))
      changes.push_back({span.begin, false, node, {}, graph.cost(node).bytes});
    const int in_flight = memory.first_of_position ? 1 : 0;
    if (activity.kind == ActivityKind::forward)
      changes.push_back({begin, false, node, memory.kept, memory.sent, in_flight});
    if (activity.kind != ActivityKind::backward) continue;
    if (memory.again != Bytes{}) changes.push_back({begin, false, node, memory.again, {}});
    changes.push_back({span.end, begin < span.end, node, Bytes{} - memory.done,
                       Bytes{} - memory.received(), -in_flight});
  }
  std::stable_sort(changes.begin(), changes.end(), [&](const Change& a, const Change& b) {
    if (a.at != b.at) return a.at < b.at;
    if (a.released_first != b.released_first)
      return a.released_first == (ties == TieOrder::releases_first);
    return a.node < b.node;
  });
  std::vector<MemoryStep> steps;
  MemoryStep held;
  std::map<std::uint32_t, int> begun;  // by micro-batch, in how many positions
  for (const Change& change : changes) {
    begun[graph.activities[change.node].micro_batch.value] += change.in_flight;
    held.in_flight = static_cast<std::int32_t>(
        std::count_if(begun.begin(), begun.end(), [](const auto& one) { return one.second > 0; }));
    held.at = change.at;
    held.activations += change.activations;
    held.buffers += change.buffers;
    held.node = change.node;
    steps.push_back(held);
  }
  return steps;
}

TEST_CASE("steps are all changes sorted by time, and the peaks are their largest sums") {
  std::uint64_t together = 0;  // steps at the time of the one before
  for (std::uint64_t seed = 1; seed <= test::trials(400); ++seed) {
    CAPTURE(seed);
    const test::TestPipeline t = test::random_pipeline(seed);
    const OpGraph graph = test::graph_of(t);
    const Trace trace = simulate(graph);
    const StageCosts costs = test::costs_of(t);
    const std::vector<Position> positions = schedule_of(t).shape.positions;
    const MemoryRules rules{.recompute = t.options.recompute,
                            .weight_versions = std::vector<std::uint32_t>(t.forward.size(), 1)};
    const std::vector<StageMemory> stages = stage_memory(costs, positions, rules.recompute);
    for (const TieOrder ties : {TieOrder::releases_first, TieOrder::reservations_first}) {
      const auto steps = memory_steps(graph, trace, costs, positions, rules, ties);
      for (std::uint32_t slot = 0; slot < graph.slots(); ++slot) {
        CAPTURE(slot);
        const auto sorted = sorted_steps(graph, trace, stages, slot, ties);
        REQUIRE(steps[slot].size() == sorted.size());
        bool same = true;
        for (std::size_t i = 0; i < sorted.size(); ++i) {
          const MemoryStep& a = steps[slot][i];
          const MemoryStep& b = sorted[i];
          same = same && a.at == b.at && a.node == b.node && a.activations == b.activations &&
                 a.buffers == b.buffers && a.in_flight == b.in_flight;
          together += i > 0 && sorted[i - 1].at == b.at ? 1 : 0;
        }
        CHECK(same);
      }
    }
    const auto measured =
        measure_memory(graph, costs, rules, memory_steps(graph, trace, costs, positions, rules));
    const std::vector<Bytes> peaks = peak_memory(graph, trace, costs, positions, rules);
    const auto at_once = measure_memory(graph, trace, costs, positions, rules);
    REQUIRE(peaks.size() == measured.size());
    REQUIRE(at_once.size() == measured.size());
    for (std::size_t slot = 0; slot < peaks.size(); ++slot) {
      CHECK(peaks[slot] == measured[slot].peak.sum());
      CHECK(at_once[slot].peak.sum() == measured[slot].peak.sum());
      CHECK(at_once[slot].peak.buffers == measured[slot].peak.buffers);
      CHECK(at_once[slot].peak_op == measured[slot].peak_op);
      CHECK(at_once[slot].peak_in_flight == measured[slot].peak_in_flight);
    }
  }
  CHECK(together > test::trials(1000));
}

TEST_CASE("running sums end at zero and never fall below") {
  for (const char* schedule :
       {"naive", "gpipe", "1f1b", "eager-1f1b", "delayed-backward", "pipedream"}) {
    for (const Recompute recompute : {Recompute::none, Recompute::full, Recompute::layers}) {
      for (const bool blocking : {false, true}) {
        test::TestPipeline t = pipeline(schedule, 3, 20);
        t.options.recompute = recompute;
        t.options.blocking = blocking;
        t.link = {nanoseconds(3), BytesPerSecond{1'000'000'000}};
        const OpGraph graph = test::graph_of(t);
        const Trace trace = simulate(graph);
        for (std::uint32_t slot = 0; slot < 3; ++slot) {
          const auto steps =
              memory_steps(graph, trace, test::costs_of(t), schedule_of(t).shape.positions,
                           {.recompute = recompute, .weight_versions = {1, 1, 1}})[slot];
          for (const MemoryStep& step : steps) {
            CHECK(step.activations >= Bytes{0});
            CHECK(step.buffers >= Bytes{0});
            CHECK(step.in_flight >= 0);
          }
          CHECK(steps.back().activations == Bytes{0});
          CHECK(steps.back().buffers == Bytes{0});
          CHECK(steps.back().in_flight == 0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace plumbline
