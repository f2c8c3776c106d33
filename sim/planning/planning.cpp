// The planner's candidates, each simulated.
//
// SPDX-License-Identifier: MIT
#include "sim/planning/planning.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"
#include "schedules/planner/plan_candidates.h"
#include "sim/planning/device_choice.h"
#include "sim/planning/found_order.h"
#include "sim/planning/recomputation_fit.h"
#include "sim/prediction/predict_resolved.h"
#include "sim/setup/expected_errors.h"

namespace plumbline {
namespace {

/// Errors: the parts of a scenario that a planned partition does not go with.
std::optional<Diagnostic> check_scenario(const Scenario& scenario) {
  const Mark& mark = scenario.schedule.name_mark;
  if (!scenario.cluster_given) {
    return input_error(scenario.plan_mark,
                       "a partition is to be planned, but cluster.devices is not given");
  }
  if (scenario.schedule.file) {
    return input_error(mark, "a planned partition does not go with an order from schedule.file",
                       "the file says how many stages there are");
  }
  if (scenario.schedule.chunk_rule()) {
    return input_error(mark,
                       fmt::format("a planned partition does not go with the schedule '{}'",
                                   scenario.schedule.rule->name),
                       scenario.schedule.wish
                           ? "plan.partition: auto chooses it with the order"
                           : "it says how many stages each device has; take partition: balanced");
  }
  if (scenario.schedule.whole_model()) {
    return input_error(mark, "a planned partition does not go with the schedule 'data-parallel'",
                       "it runs the whole model on every device");
  }
  const RecomputeChoice& recompute = scenario.schedule.recompute;
  if (recompute.leaves_some() && !recompute.as_few_as_fit()) {
    return input_error(recompute.layers_mark,
                       "a planned partition does not go with a number in "
                       "schedule.recompute_layers",
                       "its formula knows none, all, or as few as fit: schedule.recompute_layers: "
                       "fit, or all");
  }
  if (scenario.schedule.slices.count > 1) {
    return input_error(scenario.schedule.slices.mark,
                       "a planned partition does not go with schedule.slices",
                       "its formula knows whole micro-batches; take partition: balanced");
  }
  if (scenario.lengths) {
    return input_error(scenario.lengths->mark,
                       "a planned partition does not go with training.micro_batch_lengths",
                       "its formula knows micro-batches of one length; take partition: balanced");
  }
  if (!scenario.cluster.runs.empty() || scenario.cluster.has_own_links()) {
    return input_error(scenario.cluster_mark,
                       "a planned partition does not go with devices or links that are not alike",
                       "plan.partition: balanced, which knows each device's times; plan.devices: "
                       "auto chooses who runs which stage");
  }
  if (scenario.plan.devices_open) {
    return input_error(scenario.plan_mark,
                       "a planned partition has its own devices, so plan.devices is not auto",
                       "leave plan.devices out");
  }
  const std::vector<Level>& levels = scenario.cluster.levels;
  if (std::any_of(levels.begin(), levels.end(),
                  [](const Level& level) { return level.own_cards; })) {
    return input_error(scenario.cluster_mark,
                       "a planned partition does not go with network cards of each device",
                       "the planner knows one card a group, cards: shared; or take partition: "
                       "balanced, and plumbline search for all the rest");
  }
  if (scenario.copies > 1) {
    return input_error(scenario.plan.data_parallel.mark,
                       "a planned partition does not go with plan.data_parallel above 1",
                       "the planner replicates stages itself: plan.data_parallel=1");
  }
  if (scenario.sharing.state >= Sharded::gradients) {
    return input_error(scenario.sharded_mark,
                       fmt::format("training.zero_stage is {}, and a planned partition may have "
                                   "replicas, which share no more than the optimizer",
                                   static_cast<int>(scenario.sharing.state)),
                       "training.zero_stage: 1 or 0");
  }
  if (scenario.sharing.degree > 0) {
    return input_error(scenario.degree_mark,
                       fmt::format("training.shard_degree is {}, and a planned partition may have "
                                   "replicas, which share with all others",
                                   scenario.sharing.degree),
                       "leave training.shard_degree out");
  }
  return std::nullopt;
}

/// The memory that stages hold under the scenario's schedule. Requires: at most the optimizer is
/// sharded.
Residency residency_of(const Scenario& scenario) {
  const ScheduleChoice& schedule = scenario.schedule;
  Residency residency;
  residency.window = schedule.rule->window;
  residency.recompute = schedule.recompute.kind;
  residency.as_few_as_fit =
      schedule.recompute.as_few_as_fit() && scenario.cluster.memory.has_value();
  residency.sharded_optimizer = scenario.sharing.state != Sharded::nothing;
  if (!schedule.asynchronous()) {
    residency.micro_batches = schedule.micro_batches;
    residency.shared = schedule.micro_batches;
    residency.versions_kept = 1;
    return residency;
  }
  switch (schedule.updates.weights) {
    case WeightRule::stash:
    case WeightRule::vertical_sync:  // later stages keep more: the simulation decides what fits
      break;
    case WeightRule::none:
      residency.versions_kept = 1;
      break;
    case WeightRule::two:
      residency.shared = schedule.micro_batches;
      residency.versions_kept = 2;
      break;
  }
  return residency;
}

/// Simulates a candidate. Errors: the schedule cannot run it.
Result<SimulatedPlan> simulate_candidate(const Scenario& scenario, const PlanCandidate& candidate) {
  Scenario planned = with_plan(scenario, candidate);
  planned.noise.reset();
  const auto settled = fit_recomputation(std::move(planned));
  if (!settled) return settled.problems();
  const auto prediction = predict_resolved(*settled);
  if (!prediction) return prediction.problems();
  SimulatedPlan plan;
  plan.candidate = candidate;
  plan.time_s = prediction->iteration_time_s / prediction->setup.micro_batches;
  plan.fits = prediction->fits().value_or(true);
  for (const auto& slots : prediction->graph.stage_slots) {
    Bytes& peak = plan.peak_memory.emplace_back();
    for (const std::uint32_t slot : slots)
      peak = std::max(peak, prediction->memory[slot].peak.sum());
  }
  return plan;
}

/// Simulates data parallelism, which a plan has to beat: the whole model on every device. Each
/// device has its share of the micro-batches of a flush, or one.
void simulate_data_parallel(Scenario scenario, Planning& planning) {
  const RecomputeChoice recompute = scenario.schedule.recompute;
  const std::optional<Bytes> bucket = scenario.schedule.bucket;
  const std::uint32_t own =
      share_of_micro_batches(residency_of(scenario).micro_batches, scenario.cluster.device_count());
  scenario.plan = {};
  scenario.schedule = {};
  scenario.schedule.recompute = recompute;
  scenario.schedule.bucket = bucket;
  scenario.schedule.micro_batches = own;
  scenario.noise.reset();
  scenario.schedule.rule = find_schedule_rule("data-parallel");
  scenario.copies = scenario.cluster.device_count();
  const auto settled = fit_recomputation(std::move(scenario));
  if (!settled) return;
  const auto prediction = predict_resolved(*settled);
  if (!prediction) return;
  planning.data_parallel_s =
      prediction->iteration_time_s / own / static_cast<double>(settled->copies);
  Bytes& peak = planning.data_parallel_peak.emplace();
  for (const DeviceMemory& device : prediction->memory) peak = std::max(peak, device.peak.sum());
}

template <class T>
std::string flow(const std::vector<T>& values) {
  return fmt::format("[{}]", fmt::join(values, ", "));
}

void add_new(PlanCandidate plan, std::vector<PlanCandidate>& candidates) {
  const Partition partition = plan.partition();
  const bool is_new =
      std::none_of(candidates.begin(), candidates.end(),
                   [&](const PlanCandidate& known) { return known.partition() == partition; });
  if (is_new) candidates.push_back(std::move(plan));
}

/// The budget of simulations beside the formula's own candidates: about a second.
class Budget {
 public:
  /// Whether there is budget for one more run; subtracts that run.
  bool takes(const Scenario& scenario, const PlanCandidate& plan) {
    // F and B of each stage and their transfers. If layers are to fit, some trials by halving.
    const double runs = scenario.schedule.recompute.as_few_as_fit() ? 8 : 1;
    const double ops = runs * 4.0 * static_cast<double>(plan.stages.size()) *
                       scenario.schedule.micro_batches * scenario.schedule.mini_batches;
    left_ -= ops + runs * 200.0 * (1 + plan.devices_used());
    return left_ > 0;
  }

 private:
  double left_ = 10e6;  ///< In ops, or work that takes as long as one.
};

/// Adds plans that one would write by hand. The formula takes the longest chain of ops. It does not
/// see how several chains disturb each other, which uneven replicas do most. So these plans are
/// simulated, too, the formula's best first, as far as that takes no long simulations.
void add_even(const Scenario& scenario, const PlannerInput& input,
              std::vector<PlanCandidate>& candidates) {
  Budget budget;
  std::vector<PlanCandidate> plans = even_plans(input);
  std::stable_sort(plans.begin(), plans.end(), [](const PlanCandidate& a, const PlanCandidate& b) {
    return a.period_s < b.period_s;
  });
  for (PlanCandidate& plan : plans) {
    if (budget.takes(scenario, plan)) add_new(std::move(plan), candidates);
  }
}

/// Goes from a plan to others that are one step away, as long as one is faster. All simulated plans
/// join `known`. Plans that the formula finds no faster are not simulated, as no run beats the
/// formula. One exception: if as few layers as fit are recomputed, the formula counts more of them
/// than a simulation, by an upper bound of the memory.
void climb(const Scenario& scenario, const PlannerInput& input, SimulatedPlan plan, Budget& budget,
           std::vector<SimulatedPlan>& known) {
  const double beaten_by = scenario.schedule.recompute.as_few_as_fit() ? 0.15 : 0;
  for (bool is_better = true; is_better;) {
    is_better = false;
    std::vector<PlanCandidate> next = plans_next_to(input, plan.candidate);
    std::stable_sort(next.begin(), next.end(), [](const PlanCandidate& a, const PlanCandidate& b) {
      return a.period_s < b.period_s;
    });
    for (PlanCandidate& one : next) {
      if (one.period_s * (1 - beaten_by) >= plan.time_s * (1 - 1e-9)) break;
      const Partition partition = one.partition();
      if (std::any_of(known.begin(), known.end(), [&](const SimulatedPlan& other) {
            return other.candidate.partition() == partition;
          }))
        continue;
      if (!budget.takes(scenario, one)) return;
      const auto simulated = simulate_candidate(scenario, one);
      if (!simulated) continue;
      known.push_back(*simulated);
      if (!simulated->fits || simulated->time_s >= plan.time_s) continue;
      plan = *simulated;
      is_better = true;
      break;
    }
  }
}

/// Whether candidates of other kinds than the formula's own are simulated, too.
bool is_flushed(const Scenario& scenario) {
  return !scenario.schedule.asynchronous() && scenario.plan.cost_model == CostModel::calibrated;
}

/// The costs that the formula counts for each layer. If all layers are recomputed, that is
/// included. If as few as fit are, the formula finds their number itself.
SizedCosts formula_costs(const Scenario& scenario) {
  SizedCosts costs = costs_at(scenario.model->profile, scenario.micro_batch_size);
  const RecomputeChoice& recompute = scenario.schedule.recompute;
  if (recompute.kind != Recompute::none && !recompute.as_few_as_fit()) {
    for (LayerCosts& layer : costs.layers) layer.backward.mean += layer.again().mean;
  }
  return costs;
}

/// The planner's input, without a progress callback. It refers to `scenario` and `costs`.
PlannerInput planner_input(const Scenario& scenario, const std::vector<LayerCosts>& costs,
                           const PlanningOptions& options) {
  const Plan& plan = scenario.plan;
  PlannerInput input{.graph = scenario.model->graph,
                     .costs = costs,
                     .cluster = scenario.cluster,
                     .cost_model = plan.cost_model,
                     .devices_at_most = options.devices_at_most,
                     .optimizer_state = scenario.optimizer_state,
                     .gradient_width = scenario.gradient_width,
                     .residency = residency_of(scenario),
                     .overheads = scenario.overheads,
                     .straight = options.straight,
                     .activation_transfers = plan.activation_transfers.value_or(
                         plan.cost_model == CostModel::calibrated),
                     .candidates = plan.candidates,
                     .progress = {}};
  if (plan.is_planned() && plan.stages)
    input.stages_at_most = static_cast<std::uint32_t>(plan.stages->value);
  return input;
}

/// The planner's result.
struct Proposal {
  Plans plans;
  Diagnostics not_found;  ///< Why the formula had no plan, if the plans are by hand.
};

/// The formula's plans. If it finds none between two flushes, plans by hand: its memory is an upper
/// bound and its search has an end, so equal stages may do.
Result<Proposal> propose(const Scenario& scenario, PlannerInput input,
                         const std::function<bool(double)>& progress) {
  bool is_cancelled = false;
  if (progress) {
    input.progress = [&](double done) {
      is_cancelled = !progress(done);
      return !is_cancelled;
    };
  }
  auto plans = plan(input);
  if (plans) return Proposal{*std::move(plans), {}};
  Diagnostics not_found = located(plans.problems(), scenario.plan_mark);
  if (is_cancelled || !is_flushed(scenario)) return not_found;
  return Proposal{plans_by_hand(input), std::move(not_found)};
}

/// The proposal, with nothing simulated yet.
Planning planning_of(const Scenario& scenario, const Proposal& proposal) {
  Planning planning{proposal.plans, {}, scenario.plan.cost_model, {}, {}, {}, {}};
  if (!proposal.not_found.empty()) planning.not_found = proposal.not_found.front().message;
  return planning;
}

/// Adds to the formula's best the plans that are simulated beside them: even plans, and the
/// straight plan that is reported.
void add_beside_formula(const Scenario& scenario, const PlannerInput& input, Plans& plans) {
  add_even(scenario, input, plans.best);
  if (plans.straight) add_new(*plans.straight, plans.best);
}

/// Simulates every candidate. Of those by hand, only those that fit are kept. Returns the problems
/// to report if none is left: why the formula had none, or else those of the first candidate that
/// failed.
Diagnostics simulate_all(const Scenario& scenario, Diagnostics not_found, Planning& planning) {
  for (const PlanCandidate& candidate : planning.plans.best) {
    auto simulated = simulate_candidate(scenario, candidate);
    if (simulated && planning.plans.by_hand && !simulated->fits) continue;
    if (simulated) {
      planning.ranked.push_back(*std::move(simulated));
    } else if (not_found.empty()) {
      not_found = simulated.problems();
    }
  }
  return not_found;
}

bool is_better(const SimulatedPlan& a, const SimulatedPlan& b) {
  return a.fits != b.fits ? a.fits : a.time_s < b.time_s;
}

/// Sorts the plans, the best first. The published formula's choice stays first, as the user asked
/// for that.
void rank(Planning& planning) {
  const auto first =
      planning.ranked.begin() + (planning.cost_model == CostModel::published ? 1 : 0);
  std::stable_sort(first, planning.ranked.end(), is_better);
}

/// Climbs from the best few plans to plans next to them. Requires: `ranked` is sorted; it is sorted
/// again afterwards.
void climb_from_best(const Scenario& scenario, const PlannerInput& input,
                     std::vector<SimulatedPlan>& ranked) {
  constexpr std::size_t starts = 3;
  const std::vector<SimulatedPlan> best(
      ranked.begin(),
      ranked.begin() + static_cast<std::ptrdiff_t>(std::min(starts, ranked.size())));
  Budget budget;
  for (const SimulatedPlan& start : best) {
    if (start.fits) climb(scenario, input, start, budget, ranked);
  }
  std::stable_sort(ranked.begin(), ranked.end(), is_better);
}

/// A name as a double-quoted YAML scalar.
std::string quoted(const std::string& name) {
  std::string text = "\"";
  for (const char c : name) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

/// The partition in YAML: the number of layers per stage if the stages are runs of the topological
/// order that scenarios count in, else the names.
std::string partition_yaml(const Scenario& scenario, const PlanCandidate& candidate) {
  const LayerGraph& graph = scenario.model->graph;
  std::vector<std::string> stages;
  const bool counts = candidate.order == graph.topological_order();
  for (const PlannedStage& stage : candidate.stages) {
    if (counts) {
      stages.push_back(std::to_string(stage.layers.size()));
      continue;
    }
    std::vector<std::string> names;
    for (const LayerId layer : stage.layers) names.push_back(quoted(graph.layer(layer).name));
    stages.push_back("\n  " + flow(names));
  }
  return flow(stages);
}

}  // namespace

Scenario with_plan(const Scenario& scenario, const PlanCandidate& candidate) {
  Scenario settled = scenario;
  Plan& plan = settled.plan;
  const Mark& mark = scenario.plan_mark;
  plan.stages.reset();
  plan.warm_up.reset();
  StageNames names;
  Marked<std::vector<std::int64_t>> replicas{{}, mark};
  Marked<std::vector<std::int64_t>> warm_up{{}, mark};
  Marked<std::vector<std::vector<std::int64_t>>> devices{{}, mark};
  for (std::size_t s = 0; s < candidate.stages.size(); ++s) {
    const PlannedStage& stage = candidate.stages[s];
    names.emplace_back();
    for (const LayerId layer : stage.layers)
      names.back().push_back(scenario.model->graph.layer(layer).name);
    replicas.value.push_back(stage.replicas);
    warm_up.value.push_back(stage.warm_up);
    devices.value.emplace_back();
    for (const DeviceId device : candidate.devices[s]) devices.value.back().push_back(device.value);
  }
  plan.partition = std::move(names);
  plan.replicas = std::move(replicas);
  plan.devices = std::move(devices);
  if (scenario.schedule.asynchronous()) plan.warm_up = std::move(warm_up);
  return settled;
}

Result<Planning> plan_scenario(const Scenario& scenario, const PlanningOptions& options) {
  if (auto refused = check_scenario(scenario)) return *refused;
  const SizedCosts costs = formula_costs(scenario);
  const PlannerInput input = planner_input(scenario, costs.layers, options);
  const auto proposal = propose(scenario, input, options.progress);
  if (!proposal) return proposal.problems();
  Planning planning = planning_of(scenario, *proposal);
  if (!costs.estimated.empty()) planning.estimated.push_back(costs.estimated);
  if (const auto errors = expected_errors(scenario))
    planning.estimated.push_back(estimate_of(*errors));
  if (!options.devices_at_most) simulate_data_parallel(scenario, planning);
  if (is_flushed(scenario)) add_beside_formula(scenario, input, planning.plans);
  const Diagnostics refused = simulate_all(scenario, proposal->not_found, planning);
  if (planning.ranked.empty()) return refused;
  rank(planning);
  if (is_flushed(scenario)) climb_from_best(scenario, input, planning.ranked);
  const std::size_t wanted = std::max(1U, scenario.plan.candidates);
  if (planning.ranked.size() > wanted) planning.ranked.resize(wanted);
  return planning;
}

namespace {

/// Runs a scenario whose order is given.
Result<TriedDevices> try_devices(const Scenario& scenario) {
  Scenario calm = scenario;
  calm.noise.reset();
  auto fitted = fit_and_predict(std::move(calm));
  if (!fitted) return fitted.problems();
  if (!fitted->outcome) {
    auto outcome = predict_resolved(fitted->scenario, Evaluation::fastest);
    if (!outcome) return outcome.problems();
    fitted->outcome = *std::move(outcome);
  }
  TriedDevices tried{fitted->outcome->fits().value_or(true), fitted->outcome->iteration_time_s, {}};
  for (const DeviceMemory& device : fitted->outcome->memory)
    tried.peak_memory = std::max(tried.peak_memory, device.peak.sum());
  return tried;
}

}  // namespace

bool is_resolved(const Scenario& scenario) {
  return !scenario.plan.is_planned() && !scenario.schedule.recompute.as_few_as_fit() &&
         !scenario.schedule.is_open() && !scenario.plan.devices_open;
}

Result<Scenario> resolve_plan(Scenario scenario) {
  if (scenario.schedule.is_open() && !scenario.plan.is_planned())
    return find_order(std::move(scenario));
  if (scenario.plan.devices_open && !scenario.plan.is_planned()) {
    auto chosen = choose_devices(std::move(scenario), try_devices);
    if (!chosen) return chosen.problems();
    scenario = std::move(chosen->scenario);
    scenario.notes.push_back("devices: " + chosen->text);
  }
  if (!scenario.plan.is_planned()) return fit_recomputation(std::move(scenario));
  const auto planning = plan_scenario(scenario, {});
  if (!planning) return planning.problems();
  Scenario settled = with_plan(scenario, planning->winner().candidate);
  settled.notes.push_back(
      fmt::format("planned: {} ({} by the formula, {} simulated per micro-batch)",
                  planning->winner().candidate.config(),
                  to_text(round_up(planning->winner().candidate.period_s * 1e9)),
                  to_text(round_up(planning->winner().time_s * 1e9))));
  if (!planning->not_found.empty()) settled.notes.push_back(not_found_note(*planning));
  return fit_recomputation(std::move(settled));
}

std::string not_found_note(const Planning& planning) {
  return fmt::format(
      "by the formula {}; plans as one would write them by hand were simulated instead, and those "
      "next to them",
      planning.not_found);
}

std::string plan_yaml(const Scenario& scenario, const Planning& planning) {
  const PlanCandidate& candidate = planning.winner().candidate;
  std::vector<std::uint32_t> replicas, warm_up;
  std::vector<std::string> devices;
  for (std::size_t s = 0; s < candidate.stages.size(); ++s) {
    replicas.push_back(candidate.stages[s].replicas);
    warm_up.push_back(candidate.stages[s].warm_up);
    std::vector<std::uint32_t> of_stage;
    for (const DeviceId device : candidate.devices[s]) of_stage.push_back(device.value);
    devices.push_back(flow(of_stage));
  }
  std::string text =
      fmt::format("# A plan for '{}', written by plumbline plan.\n", printable(scenario.name));
  text +=
      fmt::format("stages: {}\npartition: {}\nreplicas: {}\ndevices: {}\n", candidate.stages.size(),
                  partition_yaml(scenario, candidate), flow(replicas), flow(devices));
  if (scenario.schedule.asynchronous()) text += fmt::format("warm_up: {}\n", flow(warm_up));
  return text;
}

}  // namespace plumbline
