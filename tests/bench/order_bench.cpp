// The search of an order: what a larger effort gains. `above_bound` is how much longer the order is
// than its bound, in percent; that of the best published order is `published`.
//
// SPDX-License-Identifier: MIT
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "sim/planning/found_order.h"

namespace plumbline {
namespace {

/// A V of 2p stages whose times differ by up to a half, in the memory of 1F1B.
Scenario uneven_vee(int devices, int micro_batches, double effort) {
  std::string text = "version: 1\nname: bench\nmodel:\n  layers:";
  for (int s = 0; s < 2 * devices; ++s) {
    text += fmt::format(
        "\n    - {{name: l{}, forward: {} us, backward_input: {} us, backward_weight: {} us, "
        "activation: 1 MiB}}",
        s, 1000 + 37 * s % 500, 1200 + 61 * s % 600, 800 + 23 * s % 400);
  }
  text += fmt::format(
      "\ncluster: {{devices: {}, link: {{latency: 100 us}}}}\n"
      "schedule: {{name: auto, placement: v, in_flight: {}, effort: {}, micro_batches: {}}}\n",
      devices, 2 * devices, effort, micro_batches);
  auto scenario =
      parse_scenario(std::make_shared<const Source>(Source{"bench.yaml", text, ""}), {});
  if (!scenario) throw std::runtime_error(to_text(scenario.problems()));
  return *std::move(scenario);
}

/// Arguments: devices, micro-batches, thousandths of the usual effort.
void order_effort(benchmark::State& state) {
  const Scenario scenario =
      uneven_vee(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)),
                 static_cast<double>(state.range(2)) / 1000);
  double gap = 0, published = 0;
  for (auto _ : state) {
    const auto answer = answer_order(scenario);
    if (!answer) throw std::runtime_error(to_text(answer.problems()));
    gap = answer->gap();
    for (const NamedOrder& named : answer->named) {
      if (!named.fits) continue;
      published = named.time_s * 1e9 / static_cast<double>(answer->bound.time) - 1;
      break;
    }
  }
  state.counters["above_bound"] = 100 * gap;
  state.counters["published"] = 100 * published;
}
BENCHMARK(order_effort)
    ->ArgNames({"devices", "micro_batches", "effort"})
    ->ArgsProduct({{16}, {64}, {30, 125, 500, 1000, 4000}})
    ->Args({64, 256, 1000})
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);

}  // namespace
}  // namespace plumbline
