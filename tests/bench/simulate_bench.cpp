// How fast a schedule is generated, lowered, simulated and measured; items are ops (F and B).
//
// SPDX-License-Identifier: MIT
#include <benchmark/benchmark.h>

#include "schedules/generators/generators.h"
#include "sim/engine/compiled_graph.h"
#include "sim/engine/memory.h"
#include "sim/engine/metrics.h"
#include "sim/engine/simulate.h"
#include "sim/graph/lower.h"

namespace plumbline {
namespace {

/// 1F1B over `stages` uneven stages with a link.
struct Case {
  Partition partition;
  StageCosts costs;
  PipelineShape shape;
  std::vector<std::uint32_t> windows;
  std::vector<DeviceId> devices;
  Cluster cluster;

  Case(std::uint32_t stages, std::uint32_t micro_batches) {
    std::vector<Layer> layers(stages);
    std::vector<LayerCosts> layer_costs(stages);
    std::vector<std::vector<DeviceId>> stage_devices;
    for (std::uint32_t s = 0; s < stages; ++s) {
      layers[s] = {"layer", "", {1 << 20}};
      layer_costs[s].forward.mean = std::chrono::microseconds(1000 + s % 7);
      layer_costs[s].backward.mean = std::chrono::microseconds(2000 + s % 5);
      layer_costs[s].output = {1 << 20};
      layer_costs[s].activation = {1 << 21};
      stage_devices.push_back({DeviceId{s}});
    }
    const LayerGraph graph = LayerGraph::chain(std::move(layers));
    partition = make_partition(graph.topological_order(), std::vector<std::uint32_t>(stages, 1),
                               stage_devices);
    costs = stage_costs(graph, layer_costs, partition);
    shape = pipeline_shape(partition, micro_batches);
    windows = plumbline::windows(*find_schedule_rule("1f1b"), shape, std::nullopt);
    devices = devices_in_use(partition);
    cluster = flat_cluster(stages, {std::chrono::microseconds(5), BytesPerSecond{100'000'000'000}});
  }

  Schedule schedule() const { return *generate(*find_schedule_rule("1f1b"), shape, windows, {}); }
  OpGraph graph() const { return *lower(schedule(), costs, devices, cluster, {}, {}); }
};

Case make_case(const benchmark::State& state) {
  return {static_cast<std::uint32_t>(state.range(0)), static_cast<std::uint32_t>(state.range(1))};
}

void count_ops(benchmark::State& state) {
  const std::int64_t ops = 2 * state.range(0) * state.range(1);
  state.SetItemsProcessed(state.iterations() * ops);
  state.SetComplexityN(ops);
}

void generate_and_check(benchmark::State& state) {
  const Case c = make_case(state);
  for (auto _ : state) benchmark::DoNotOptimize(c.schedule().issue_order.data());
  count_ops(state);
}

void lower_schedule(benchmark::State& state) {
  const Case c = make_case(state);
  const Schedule schedule = c.schedule();
  for (auto _ : state)
    benchmark::DoNotOptimize(lower(schedule, c.costs, c.devices, c.cluster, {}, {})->nodes.data());
  count_ops(state);
}

void simulate_by_events(benchmark::State& state) {
  const OpGraph graph = make_case(state).graph();
  for (auto _ : state) benchmark::DoNotOptimize(simulate(graph).spans.data());
  count_ops(state);
}

/// The steps that the speed issue is about: from the shape to the trace.
void generate_lower_simulate(benchmark::State& state) {
  const Case c = make_case(state);
  for (auto _ : state) benchmark::DoNotOptimize(simulate(c.graph()).spans.data());
  count_ops(state);
}

void evaluate_longest_path(benchmark::State& state) {
  const OpGraph graph = make_case(state).graph();
  for (auto _ : state) benchmark::DoNotOptimize(longest_path_end(graph));
  count_ops(state);
}

/// Many sets of costs of one graph: what sweeps and uncertainty ask.
void evaluate_side_by_side(benchmark::State& state) {
  const OpGraph graph = make_case(state).graph();
  const CompiledGraph compiled(graph, index_by_class(graph));
  const CompiledGraph::Tables tables = compiled.tables();
  CompiledGraph::Workspace workspace;
  std::vector<std::int64_t> ends;
  for (auto _ : state) {
    compiled.evaluate(tables, workspace, ends);
    benchmark::DoNotOptimize(ends.data());
  }
  count_ops(state);
  const std::int64_t runs = state.iterations() * static_cast<std::int64_t>(CompiledGraph::kLanes);
  state.counters["scenarios"] =
      benchmark::Counter(static_cast<double>(runs), benchmark::Counter::kIsRate);
}

void measure_trace(benchmark::State& state) {
  const Case c = make_case(state);
  const OpGraph graph = c.graph();
  const Trace trace = simulate(graph);
  const std::vector<std::uint32_t> ones(c.partition.stages.size(), 1);
  for (auto _ : state) {
    benchmark::DoNotOptimize(measure(graph, trace, {}).makespan);
    const MemoryRules rules{.weight_versions = ones};
    benchmark::DoNotOptimize(
        measure_memory(graph, trace, c.costs, c.shape.positions, rules).data());
  }
  count_ops(state);
}

#define PLUMBLINE_BENCH(function) \
  BENCHMARK(function)             \
      ->Args({8, 32})             \
      ->Args({16, 256})           \
      ->Args({64, 1024})          \
      ->Unit(benchmark::kMillisecond)
PLUMBLINE_BENCH(generate_and_check);
PLUMBLINE_BENCH(lower_schedule);
PLUMBLINE_BENCH(simulate_by_events);
PLUMBLINE_BENCH(generate_lower_simulate)->Complexity(benchmark::oNLogN);
PLUMBLINE_BENCH(evaluate_longest_path)->Complexity(benchmark::oN);
PLUMBLINE_BENCH(evaluate_side_by_side)->Complexity(benchmark::oN);
PLUMBLINE_BENCH(measure_trace);
// By hand: --benchmark_filter=ten_million takes some 2 GB.
void ten_million_ops(benchmark::State& state) { generate_lower_simulate(state); }
BENCHMARK(ten_million_ops)->Args({64, 78125})->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace plumbline
