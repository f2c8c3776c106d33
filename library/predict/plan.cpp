// Plans and orders.
//
// SPDX-License-Identifier: MIT
#include <chrono>

#include "base/units.h"
#include "library/predict/inside.h"
#include "schedules/files/lowered_csv.h"
#include "sim/planning/found_order.h"
#include "sim/planning/planning.h"
#include "sim/report/order_report.h"
#include "sim/report/report.h"
#include "sim/setup/resolve_setup.h"

namespace plumbline::v1 {
namespace {

PlanStage stage_of(const plumbline::Scenario& scenario, const SimulatedPlan& plan,
                   std::size_t number) {
  const PlannedStage& planned = plan.candidate.stages[number];
  PlanStage stage;
  stage.layers.reserve(planned.layers.size());
  for (const LayerId layer : planned.layers)
    stage.layers.push_back(scenario.model->graph.layer(layer).name);
  stage.devices.reserve(plan.candidate.devices[number].size());
  for (const DeviceId device : plan.candidate.devices[number])
    stage.devices.push_back(device.value);
  stage.replicas = planned.replicas;
  stage.compute_s = seconds(planned.compute);
  stage.warm_up = planned.warm_up;
  stage.peak_memory_bytes = plan.peak_memory[number].count;
  return stage;
}

}  // namespace

Result<Plan> plan(const Scenario& scenario, const PlanLimits& limits) {
  plumbline::Scenario asked = scenario.inside().scenario;
  if (limits.candidates > 0) asked.plan.candidates = limits.candidates;
  PlanningOptions options;
  options.straight = limits.straight;
  if (limits.devices_at_most > 0) options.devices_at_most = limits.devices_at_most;
  bool stopped = false;
  if (limits.progress) {
    options.progress = [&](double share) {
      stopped = stopped || !limits.progress(share);
      return !stopped;
    };
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto planning = plan_scenario(asked, options);
  if (!planning) {
    Error error = error_of(planning.problems());
    if (stopped) error.problems.front().fault = Fault::stopped;
    return error;
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;

  const SimulatedPlan& winner = planning->winner();
  Plan plan;
  plan.config = winner.candidate.config();
  for (std::size_t i = 0; i < winner.candidate.stages.size(); ++i)
    plan.stages.push_back(stage_of(asked, winner, i));
  plan.time_per_micro_batch_s = winner.time_s;
  plan.formula_s = winner.candidate.period_s;
  if (asked.cluster.memory) plan.fits = winner.fits;
  plan.yaml = plan_yaml(asked, *planning);
  plan.json = to_json(asked, *planning, taken.count());
  plan.text = to_table(asked, *planning).print(page_of(100));
  return plan;
}

Result<Order> order(const Input& input, const Settings& settings, const std::atomic<bool>* stop) {
  const Settings open_settings = for_open_order(settings);
  const auto read = load(input, open_settings);
  if (!read) return read.error();
  auto open = with_open_order(read->inside().scenario, open_settings);
  if (!open) return error_of(open.problems());
  const auto answer = answer_order(*std::move(open), stop);
  if (!answer) return error_of(answer.problems());
  if (stop && *stop) return stopped_error("the search was stopped");
  const auto setup = resolve_setup(answer->scenario, /*for_run=*/false);
  if (!setup) return error_of(setup.problems());
  const OrderReport report{*answer, *setup, {}, {}};

  Order order;
  order.time_s = answer->time_s;
  order.bound_s = static_cast<double>(answer->bound.time) * 1e-9;
  order.gap = answer->gap();
  order.peak_memory_bytes = answer->peak_memory.count;
  order.named.reserve(answer->named.size());
  for (const NamedOrder& one : answer->named)
    order.named.push_back({one.name, one.time_s, one.fits});
  order.csv = torch_csv(setup->schedule);
  order.lowered_csv = lowered_csv(setup->schedule);
  order.json = order_json(report, kLibraryVersion);
  order.text = order_text(report, page_of(100));
  return order;
}

}  // namespace plumbline::v1
