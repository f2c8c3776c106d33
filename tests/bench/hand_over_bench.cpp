// How long it takes until a worker of a real run goes on with what another one has made.
//
// SPDX-License-Identifier: MIT
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>
#include <vector>

#include "calibrate/runtime/runner.h"
#include "calibrate/runtime/synthetic.h"
#include "sim/engine/idle.h"
#include "sim/planning/predict.h"

namespace plumbline {
namespace {

/// The naive schedule on two devices, with ops and transfers that take no time: each micro-batch
/// goes there and back, and nothing overlaps. Items are hand-overs, each with the two ops between
/// it and the next; `per_hand_over` is the median over the iterations.
void hand_over(benchmark::State& state) {
  auto source = std::make_shared<Source>();
  source->name = "hand_over.yaml";
  source->text =
      "version: 1\nmodel:\n  uniform: {layers: 2, forward: 0 s, backward: 0 s, output: 0 B}\n"
      "cluster: {devices: 2}\nplan: {stages: 2}\nschedule: {name: naive, micro_batches: " +
      std::to_string(state.range(0)) + "}\n";
  const auto scenario = parse_scenario(source, {});
  const auto setup = resolve_setup(*scenario);
  const auto graph = lower(*setup);
  const auto backend = synthetic_backend({});
  RunOptions options;
  options.warm_up = 1;
  options.iterations = options.max_iterations = 20;
  const double hand_overs = 2.0 * static_cast<double>(state.range(0));
  std::vector<double> times;
  for (auto _ : state) {
    const auto result = run(RunPlan{*graph, *setup}, *backend, nodes_by_slot(*graph), options);
    const auto* record = std::get_if<RunRecord>(&result);
    if (!record) {
      state.SkipWithError(std::get<RunFailure>(result).message.c_str());
      break;
    }
    double sum_s = 0;
    for (const MeasuredIteration& iteration : record->iterations) {
      SimTime end;
      for (const Span& span : iteration.trace.spans) end = std::max(end, span.end);
      times.push_back(seconds(end.time_since_epoch()) / hand_overs);
      sum_s += seconds(end.time_since_epoch());
    }
    state.SetIterationTime(sum_s);
  }
  if (times.empty()) return;
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                   times.end());
  state.counters["per_hand_over"] = times[times.size() / 2];
  state.SetItemsProcessed(state.iterations() * 20 * 2 * state.range(0));
}

BENCHMARK(hand_over)->Arg(100)->Arg(1'000)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace plumbline
