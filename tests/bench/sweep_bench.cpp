// How many points of a sweep a core evaluates in a second; items are points.
//
// SPDX-License-Identifier: MIT
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "sim/planning/predict.h"
#include "sim/search/search.h"
#include "sim/search/search_best.h"
#include "sim/whatif/sweep.h"

namespace plumbline {
namespace {

Sweep make_sweep(std::int64_t stages, std::int64_t micro_batches) {
  const std::string text = fmt::format(
      "version: 1\n"
      "model: {{uniform: {{layers: {0}, forward: 1 ms, backward: 2 ms, output: 4 MiB, activation: "
      "12 MiB, parameters: 16 MiB}}, batch: 32}}\n"
      "cluster: {{devices: {0}, memory: 80 GiB, link: {{latency: 5 us, bandwidth: 100 GB/s}}}}\n"
      "schedule: {{name: 1f1b, micro_batches: {1}}}\n",
      stages, micro_batches);
  return *Sweep::parse(std::make_shared<const Source>(Source{"bench.yaml", text, ""}),
                       {"training.micro_batch_size=range(1,129)", "overhead.per_op=1 us,2 us"});
}

void evaluate_points(benchmark::State& state) {
  static const Sweep sweep = make_sweep(8, 32);
  std::uint64_t point = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(sweep.evaluate(point++ % sweep.points()));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(evaluate_points)->Threads(1)->Threads(2)->UseRealTime();

void read_points(benchmark::State& state) {
  const Sweep sweep = make_sweep(8, 32);
  std::uint64_t point = 0;
  for (auto _ : state) benchmark::DoNotOptimize(sweep.scenario(point++ % sweep.points()));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(read_points);

/// A pipeline of 8 stages in `copies` copies, all of them simulated or one for all.
void predict_copies(benchmark::State& state, Evaluation evaluation) {
  const auto copies = state.range(0);
  const std::string text = fmt::format(
      "version: 1\n"
      "model: {{uniform: {{layers: 8, forward: 1 ms, backward: 2 ms, output: 4 MiB, activation: "
      "12 MiB, parameters: 16 MiB}}, batch: 32}}\n"
      "cluster: {{devices: {}, memory: 80 GiB, link: {{latency: 5 us, bandwidth: 100 GB/s}}}}\n"
      "plan: {{stages: 8, data_parallel: fill}}\n"
      "schedule: {{name: 1f1b, micro_batches: 32}}\n",
      8 * copies);
  const Scenario scenario =
      *parse_scenario(std::make_shared<const Source>(Source{"bench.yaml", text, ""}), {});
  for (auto _ : state) benchmark::DoNotOptimize(predict(scenario, evaluation));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(predict_copies, one_by_one, Evaluation::events)->Arg(1)->Arg(8)->Arg(64);
BENCHMARK_CAPTURE(predict_copies, first_copy_only, Evaluation::fastest)->Arg(1)->Arg(8)->Arg(64);

Search make_search() {
  const std::string text =
      "version: 1\n"
      "model: {uniform: {layers: 32, forward: 1 ms, backward: 2 ms, output: 4 MiB, activation: "
      "500 MiB, parameters: 160 MiB}, batch: 1}\n"
      "cluster: {devices: 64, memory: 20 GiB, link: {latency: 5 us, bandwidth: 100 GB/s}}\n"
      "training: {mini_batch_size: 256}\n";
  return *Search::parse(std::make_shared<const Source>(Source{"bench.yaml", text, ""}), {});
}

/// A family of layouts of a search: reading, fitting and predicting them.
void search_layouts(benchmark::State& state) {
  const Search search = make_search();
  std::size_t family = 0;
  std::int64_t layouts = 0;
  for (auto _ : state) {
    const LayoutFamily& next = search.families()[family++ % search.families().size()];
    benchmark::DoNotOptimize(search.evaluate(next));
    layouts += static_cast<std::int64_t>(next.layouts());
  }
  state.SetItemsProcessed(layouts);
}
BENCHMARK(search_layouts);

/// The best ten layouts of the same search, by bounds; items are layouts, as above.
void search_best_ten(benchmark::State& state) {
  const Search search = make_search();
  SearchSelection selection;
  selection.rows.top = 10;
  WorkOptions options;
  options.threads = 1;
  for (auto _ : state) benchmark::DoNotOptimize(search_best(search, selection, 10, options).done);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(search.layouts()));
}
BENCHMARK(search_best_ten)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace plumbline
