// How many points of a sweep a core evaluates in a second; items are points.
// SPDX-License-Identifier: MIT
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "sim/sweep.h"

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

}  // namespace
}  // namespace plumbline
