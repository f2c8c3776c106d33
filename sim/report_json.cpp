// The JSON of a prediction; the one file that knows the JSON library.
// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>

#include "sim/report.h"

namespace plumbline {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json causes(const IdleByCause& idle) {
  Json json;
  for (const IdleCause cause : kIdleCauses)
    json[std::string(name(cause))] = seconds(idle.of(cause));
  return json;
}

Json memory_parts(const MemoryParts& peak) {
  return {{"weights_bytes", peak.weights.count},     {"gradients_bytes", peak.gradients.count},
          {"optimizer_bytes", peak.optimizer.count}, {"activations_bytes", peak.activations.count},
          {"stash_bytes", peak.stash.count},         {"buffers_bytes", peak.buffers.count}};
}

Json device(const Prediction& p, std::size_t slot, const std::vector<std::uint32_t>& stages) {
  const DeviceMetrics& metrics = p.metrics.devices[slot];
  const DeviceMemory& memory = p.memory[slot];
  const auto makespan = static_cast<double>(p.metrics.makespan.count());
  return {{"device", p.graph.devices[slot].value},
          {"stages", stages},
          {"busy_s", seconds(metrics.busy)},
          {"idle_s", seconds(metrics.idle)},
          {"span_s", seconds(metrics.span)},
          {"bubble_fraction",
           makespan > 0 ? static_cast<double>(metrics.idle.count()) / makespan : 0.0},
          {"idle_by_cause_s", causes(metrics.idle_by_cause)},
          {"peak_in_flight", memory.peak_in_flight},
          {"weight_versions", memory.weight_versions},
          {"peak_memory_bytes", memory.peak.sum().count},
          {"peak_memory_op", memory.peak_op},
          {"memory", memory_parts(memory.peak)},
          {"fits", or_null(p.fits(slot))}};
}

}  // namespace

std::string to_json(const Prediction& p, const std::string& version) {
  const Metrics& m = p.metrics;
  Json devices = Json::array();
  const auto stages = p.graph.stages_by_slot();
  for (std::size_t slot = 0; slot < p.memory.size(); ++slot)
    devices.push_back(device(p, slot, stages[slot]));
  Json json = {
      {"schema_version", 1},
      {"tool", {{"name", "plumbline"}, {"version", version}}},
      {"scenario", p.scenario},
      {"schedule", p.pipeline.schedule.name},
      {"stages", p.pipeline.partition.stages.size()},
      {"device_count", p.graph.slots()},
      {"micro_batches", p.micro_batches},
      {"mini_batches", p.mini_batches},
      {"operations", m.operations},
      {"makespan_s", seconds(m.makespan)},
      {"iteration_time_s", p.iteration_time_s},
      {"period_s", m.steady ? Json(m.steady->period_s) : Json(nullptr)},
      {"throughput_samples_per_s", or_null(p.throughput_samples_per_s)},
      {"bubble_fraction", m.bubble_fraction()},
      {"bubble_overhead", m.bubble_overhead()},
      {"steady_bubble_fraction", m.steady ? Json(m.steady->bubble_fraction) : Json(nullptr)},
      {"communication_stall_fraction", m.communication_stall_fraction()}};
  json["formula"] = nullptr;
  if (p.formula) {
    json["formula"] = {{"bubble_fraction", p.formula->bubble_fraction},
                       {"bubble_overhead", p.formula->bubble_overhead},
                       {"text", p.formula->text}};
  }
  json["transfers"] = {
      {"count", m.transfers}, {"bytes", m.transfer_bytes.count}, {"exposed_s", seconds(m.exposed)}};
  json["all_reduces"] = {{"count", m.all_reduces}, {"bytes", m.all_reduce_bytes.count}};
  json["devices"] = std::move(devices);
  json["fits"] = or_null(p.fits());
  json["estimated"] = p.pipeline.estimated;
  if (m.steady) {
    json["steady"] = {{"fill_s", seconds(m.steady->fill)},
                      {"length_s", seconds(m.steady->length)},
                      {"drain_s", seconds(m.steady->drain)},
                      {"bottleneck_s", m.steady->bottleneck_s},
                      {"warm_up_limited", m.steady->warm_up_limited},
                      {"settled", m.steady->settled},
                      {"first_micro_batch", m.steady->first},
                      {"last_micro_batch", m.steady->last}};
  }
  Json weights = Json::array();
  for (std::size_t s = 0; m.steady && s < p.pipeline.weights.size(); ++s) {
    const StageVersions& stage = p.pipeline.weights[s];
    const VersionUse& use = stage.uses[m.steady->first];
    weights.push_back({{"stage", s},
                       {"kept", stage.kept},
                       {"version_bytes", p.pipeline.costs.stages[s].parameters.count},
                       {"micro_batch", m.steady->first},
                       {"forward_version", use.forward},
                       {"backward_version", use.backward},
                       {"applied_to_version", use.applied_to},
                       {"staleness", use.staleness()}});
  }
  if (m.steady) json["weights"] = std::move(weights);
  json["notes"] = p.pipeline.notes;
  return json.dump(1) + '\n';
}

}  // namespace plumbline
