// The JSON of a prediction; the one file that knows the JSON library.
//
// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>

#include "base/json_value.h"
#include "sim/report/bubble_json.h"
#include "sim/report/report.h"
#include "sim/whatif/bill_json.h"

namespace plumbline {
namespace {

using Json = nlohmann::ordered_json;

Json causes(const IdleByCause& idle) {
  Json json;
  for (const IdleCause cause : kIdleCauses)
    json[std::string(name(cause))] = seconds(idle.of(cause));
  return json;
}

/// A number at the 5th, 50th and 95th percentile of the sampled runs.
template <class Number>
Json percentiles(Number&& number) {
  return {{"p5", number(0.05)}, {"p50", number(0.5)}, {"p95", number(0.95)}};
}

Json uncertainty(const Outcome& p) {
  const Uncertainty& u = *p.uncertainty;
  // 5 % of the runs do not reach the throughput at the 95th percentile of the time.
  const auto throughput = [&](double share) {
    const double time_s = u.iteration_time_s(1 - share);
    return time_s > 0 ? Json(p.samples_per_iteration() / time_s) : Json(nullptr);
  };
  return {
      {"samples", u.iteration_times_s.size()},
      {"seed", u.seed},
      {"iteration_time_s", percentiles([&](double share) { return u.iteration_time_s(share); })},
      {"throughput_samples_per_s", percentiles(throughput)}};
}

/// The interval that a share of kErrorCoverage of such runs lie in. Requires: there is one.
Json interval(const Outcome& p) {
  const TimeRange likely = *p.likely_iteration_time();
  const PublishedErrors& errors = *p.setup.errors;
  return {{"low", likely.low_s},       {"high", likely.high_s}, {"coverage", kErrorCoverage},
          {"kind", name(errors.kind)}, {"runs", errors.runs},   {"from", to_text(errors)},
          {"setting", errors.setting}};
}

Json memory_parts(const MemoryParts& peak) {
  return {{"weights_bytes", peak.weights.count},     {"gradients_bytes", peak.gradients.count},
          {"optimizer_bytes", peak.optimizer.count}, {"activations_bytes", peak.activations.count},
          {"stash_bytes", peak.stash.count},         {"buffers_bytes", peak.buffers.count},
          {"temporary_bytes", peak.temporary.count}};
}

Json device(const Outcome& p, std::size_t slot, const std::vector<std::uint32_t>& stages) {
  const DeviceMetrics& metrics = p.metrics.devices[slot];
  const DeviceMemory& memory = p.memory[slot];
  const auto whole = static_cast<double>(p.metrics.whole().count());
  Json json = {{"device", p.graph.devices[slot].value}};
  if (const std::string kind = p.device_kind(slot); !kind.empty()) json["kind"] = kind;
  json.update(
      {{"stages", stages},
       {"busy_s", seconds(metrics.busy)},
       {"idle_s", seconds(metrics.idle)},
       {"span_s", seconds(metrics.span)},
       {"bubble_fraction", whole > 0 ? static_cast<double>(metrics.idle.count()) / whole : 0.0},
       {"idle_by_cause_s", causes(metrics.idle_by_cause)},
       {"peak_in_flight", memory.peak_in_flight},
       {"weight_versions", memory.weight_versions},
       {"peak_memory_bytes", memory.peak.sum().count},
       {"peak_memory_op", memory.peak_op},
       {"memory", memory_parts(memory.peak)},
       {"fits", or_null(p.fits(slot))}});
  if (json.contains("kind"))
    json["memory_limit_bytes"] =
        p.memory_limit(slot) ? Json(p.memory_limit(slot)->count) : Json(nullptr);
  return json;
}

Json device_list(const Outcome& p) {
  Json devices = Json::array();
  const auto stages = p.graph.stages_by_slot();
  for (std::size_t slot = 0; slot < p.memory.size(); ++slot)
    devices.push_back(device(p, slot, stages[slot]));
  return devices;
}

/// The setup and the numbers of a whole run, which every prediction has.
Json whole_run(const Outcome& p, const std::string& version) {
  const Metrics& m = p.metrics;
  return {{"schema_version", 1},
          {"tool", {{"name", "plumbline"}, {"version", version}}},
          {"scenario", p.setup.name},
          {"schedule", p.setup.schedule.name},
          {"stages", p.setup.partition.stages.size()},
          {"device_count", p.graph.slots()},
          {"micro_batches", p.setup.micro_batches},
          {"slices", p.setup.slices},
          {"mini_batches", p.setup.mini_batches},
          {"operations", m.operations},
          {"makespan_s", seconds(m.makespan)},
          {"iteration_time_s", p.iteration_time_s},
          {"period_s", m.steady ? Json(m.steady->period_s) : Json(nullptr)},
          {"throughput_samples_per_s", or_null(p.throughput_samples_per_s)},
          {"devices_used", p.devices_used()},
          {"devices_in_all", p.devices_in_all()},
          {"layers", p.layers()},
          {"parameters_bytes", p.parameters() ? Json(p.parameters()->count) : Json(nullptr)},
          {"throughput_per_device_samples_per_s", or_null(p.throughput_per_device())},
          {"model_flops", or_null(p.model_flops)},
          {"model_flops_per_device_per_s", or_null(p.flops_per_s_per_device())},
          {"model_flops_utilization", or_null(p.model_flops_utilization())},
          {"bubble_fraction", m.bubble_fraction()},
          {"bubble_overhead", m.bubble_overhead()},
          {"steady_bubble_fraction", m.steady ? Json(m.steady->bubble_fraction) : Json(nullptr)},
          {"communication_stall_fraction", m.communication_stall_fraction()},
          {"sent_in_groups_fraction", or_null(p.sent_in_groups_fraction())}};
}

Json formula_json(const ClosedForm& formula) {
  return {{"bubble_fraction", formula.bubble_fraction},
          {"bubble_overhead", formula.bubble_overhead},
          {"text", formula.text}};
}

Json kernel_times(const KernelShares& shares) {
  return {{"file", shares.file},
          {"device", shares.device},
          {"measured_fraction", shares.measured},
          {"interpolated_fraction", shares.interpolated},
          {"modelled_fraction", shares.modelled}};
}

Json steady_state(const SteadyState& steady) {
  return {{"fill_s", seconds(steady.fill)},
          {"length_s", seconds(steady.length)},
          {"drain_s", seconds(steady.drain)},
          {"bottleneck_s", steady.bottleneck_s},
          {"warm_up_limited", steady.warm_up_limited},
          {"settled", steady.settled},
          {"first_micro_batch", steady.first},
          {"last_micro_batch", steady.last}};
}

/// The versions of the stages' weights that the micro-batch meets.
Json weight_versions(const TrainingSetup& setup, std::uint32_t micro_batch) {
  Json weights = Json::array();
  for (std::size_t s = 0; s < setup.weights.size(); ++s) {
    const StageVersions& stage = setup.weights[s];
    const VersionUse& use = stage.uses[micro_batch];
    weights.push_back({{"stage", s},
                       {"kept", stage.kept},
                       {"version_bytes", setup.costs.stages[s].parameters.count},
                       {"micro_batch", micro_batch},
                       {"forward_version", use.forward},
                       {"backward_version", use.backward},
                       {"applied_to_version", use.applied_to},
                       {"staleness", use.staleness()}});
  }
  return weights;
}

Json sampled_trainings(const SampledGoodput& sampled) {
  return {{"trainings", sampled.days.size()}, {"iterations", sampled.work},
          {"days_p5", sampled.at(0.05)},      {"days_p50", sampled.at(0.5)},
          {"days_p95", sampled.at(0.95)},     {"failures_mean", sampled.failures}};
}

/// Where the time goes that is not goodput, and when checkpoints are saved.
Json goodput_parts(const Outcome& p, const Goodput& goodput) {
  const FailingJob& job = goodput.job;
  Json parts = {{"checkpoint_fraction", goodput.checkpoint_fraction},
                {"lost_fraction", goodput.lost_fraction},
                {"restart_fraction", goodput.restart_fraction},
                {"failures_per_day", kSecondsOfDay * job.failures_per_s},
                {"iterations_between_checkpoints", goodput.iterations},
                {"interval_s", goodput.interval_s()},
                {"is_best_interval", goodput.is_best},
                {"waits_for_write", goodput.waits_for_write},
                {"young_interval_s", young_interval_s(job)},
                {"daly_interval_s", daly_interval_s(job)},
                {"checkpoint_bytes", p.checkpoint_bytes().count},
                {"pause_s", job.pause_s},
                {"write_s", job.write_s},
                {"restart_s", job.restart_s}};
  if (const auto sampled = p.sampled_goodput()) parts["sampled"] = sampled_trainings(*sampled);
  return parts;
}

}  // namespace

std::string to_json(const Outcome& p, const std::string& version) {
  const Metrics& m = p.metrics;
  Json json = whole_run(p, version);
  const Bill bill = p.bill();
  add_bill(bill, json);
  if (const auto tokens = bill.tokens_per_day()) json["tokens_per_day"] = *tokens;
  if (const auto goodput = p.goodput()) json["goodput_parts"] = goodput_parts(p, *goodput);
  if (m.period) json["flush"] = "none";
  json["formula"] = p.formula ? formula_json(*p.formula) : Json(nullptr);
  if (p.bubble_terms) json["bubble_terms"] = bubble_json(*p.bubble_terms);
  json["transfers"] = {
      {"count", m.transfers}, {"bytes", m.transfer_bytes.count}, {"exposed_s", seconds(m.exposed)}};
  json["all_reduces"] = {{"count", m.all_reduces}, {"bytes", m.all_reduce_bytes.count}};
  json["devices"] = device_list(p);
  json["fits"] = or_null(p.fits());
  json["estimated"] = p.setup.estimated;
  if (const auto& shares = p.setup.kernel_shares()) json["kernel_times"] = kernel_times(*shares);
  if (m.steady) {
    json["steady"] = steady_state(*m.steady);
    json["weights"] = weight_versions(p.setup, m.steady->first);
  }
  if (!p.setup.model->name.empty()) json["model"] = p.setup.model->name;
  if (p.setup.errors) json["iteration_time_interval_s"] = interval(p);
  if (p.uncertainty) json["uncertainty"] = uncertainty(p);
  if (!p.setup.recomputed.empty()) json["recomputed_layers"] = p.setup.recomputed;
  json["notes"] = p.setup.notes;
  return json.dump(1) + '\n';
}

namespace {

Json planned_stage(const Scenario& scenario, const SimulatedPlan& simulated, std::size_t s) {
  const PlanCandidate& plan = simulated.candidate;
  const PlannedStage& stage = plan.stages[s];
  const LayerGraph& graph = scenario.model->graph;
  Json names = Json::array();
  for (const LayerId layer : stage.layers) names.push_back(graph.layer(layer).name);
  Json devices = Json::array();
  for (const DeviceId device : plan.devices[s]) devices.push_back(device.value);
  return {{"stage", s},
          {"first_layer", names.front()},
          {"last_layer", names.back()},
          {"layers", stage.layers.size()},
          {"layer_names", names},
          {"devices", devices},
          {"replicas", stage.replicas},
          {"compute_s", seconds(stage.compute)},
          {"synchronization_s", seconds(stage.synchronization)},
          {"warm_up", stage.warm_up},
          {"weight_versions", stage.weight_versions},
          {"peak_memory_bytes", simulated.peak_memory[s].count},
          {"peak_memory_bound_bytes", stage.peak_memory.count}};
}

/// The formula's parts of an iteration.
Json flush(const PlanCandidate& plan) {
  if (!plan.flush) return nullptr;
  return {{"work_s", plan.flush->work_s},
          {"flush_s", plan.flush->flush_s},
          {"all_reduce_s", plan.flush->all_reduce_s},
          {"update_s", plan.flush->update_s}};
}

Json candidate(const SimulatedPlan& plan) {
  Json layers = Json::array();
  Json warm_up = Json::array();
  for (const PlannedStage& stage : plan.candidate.stages) {
    layers.push_back(stage.layers.size());
    warm_up.push_back(stage.warm_up);
  }
  return {{"config", plan.candidate.config()},
          {"layers", layers},
          {"warm_up", warm_up},
          {"time_per_mini_batch_s", plan.candidate.period_s},
          {"simulated_time_per_mini_batch_s", plan.time_s},
          {"flush", flush(plan.candidate)},
          {"bottleneck", to_text(plan.candidate.bottleneck)},
          {"fits", plan.fits}};
}

}  // namespace

std::string to_json(const Scenario& scenario, const Planning& planning, double planning_time_s) {
  const SimulatedPlan& winner = planning.winner();
  const PlanCandidate& plan = winner.candidate;
  const Plans& plans = planning.plans;
  const auto faster = [&](double other_s) {
    return plan.period_s > 0 ? Json(other_s / plan.period_s) : Json(nullptr);
  };
  Json stages = Json::array();
  for (std::size_t s = 0; s < plan.stages.size(); ++s)
    stages.push_back(planned_stage(scenario, winner, s));
  Json candidates = Json::array();
  for (const SimulatedPlan& one : planning.ranked) candidates.push_back(candidate(one));
  const auto replicas = plan.stages.front().replicas;
  Json json = {
      {"schema_version", 1},
      {"planner", "pipedream"},
      {"cost_model", planning.cost_model == CostModel::published ? "published" : "calibrated"},
      {"config", plan.config()},
      {"restricted", plans.restricted},
      {"slack", plans.slack},
      {"not_found", planning.not_found.empty() ? Json(nullptr) : Json(planning.not_found)},
      {"stages", std::move(stages)},
      {"time_per_mini_batch_s", plan.period_s},
      {"simulated_time_per_mini_batch_s", winner.time_s},
      {"one_device_time_s", plans.one_device_s},
      {"data_parallel_time_per_mini_batch_s", plans.data_parallel.period_s},
      {"data_parallel_peak_memory_bytes",
       planning.data_parallel_peak.value_or(plans.data_parallel.peak_memory).count},
      {"speedup_over_one_device", faster(plans.one_device_s)},
      {"speedup_over_data_parallel", faster(plans.data_parallel.period_s)},
      {"noam", (plan.devices_used() + replicas - 1) / replicas},
      {"planning_time_s", planning_time_s},
      {"schedule", scenario.schedule.rule->name},
      {"bottleneck", to_text(plan.bottleneck)},
      {"devices_used", plan.devices_used()},
      {"straight_time_per_mini_batch_s",
       plans.straight ? Json(plans.straight->period_s) : Json(nullptr)},
      {"simulated_data_parallel_time_per_mini_batch_s", or_null(planning.data_parallel_s)},
      {"fits", winner.fits},
      {"candidates", std::move(candidates)},
      {"estimated", planning.estimated}};
  return json.dump(1) + '\n';
}

}  // namespace plumbline
