// The JSON of real runs; the only file of this folder that uses the JSON library.
//
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <nlohmann/json.hpp>

#include "calibrate/runtime/run_report.h"
#include "sim/report/report.h"

namespace plumbline {
namespace {

using Json = nlohmann::ordered_json;

Json statistics(const Statistics& s) {
  return {{"mean", s.mean}, {"median", s.median}, {"q1", s.q1},
          {"q3", s.q3},     {"least", s.min},     {"most", s.max}};
}

Json measured(const RealRun& run) {
  Json iterations = Json::array();
  for (std::size_t i = 0; i < run.iterations.size(); ++i) {
    const MeasuredIteration& one = run.iterations[i];
    iterations.push_back({{"time_s", run.times_s[i]},
                          {"clean", one.clean},
                          {"lost_s", seconds(one.lost)},
                          {"hand_over_s", seconds(one.hand_over)}});
  }
  return {{"backend", run.backend},
          {"device", run.device},
          {"cores", run.cores},
          {"remarks", run.remarks},
          {"clean_iterations", run.clean},
          {"shown_iteration", run.shown},
          {"time_s", statistics(run.time_s)},
          {"rounds_s", run.rounds_s},
          {"hand_over_per_op_s", run.hand_over_per_op_s()},
          {"iterations", std::move(iterations)}};
}

Json idle(const Outcome& outcome) {
  Json json;
  for (const IdleCause cause : kIdleCauses)
    json[std::string(name(cause))] = seconds(outcome.metrics.idle_for(cause));
  return json;
}

Json pair(const Json& predicted, const Json& measured) {
  return {{"predicted", predicted}, {"measured", measured}};
}

Json point_json(const ValidationPoint& point) {
  const Validation& v = point.validation;
  const Outcome& p = v.predicted;
  const Outcome& m = v.measured.outcome;
  // Measured values are unknown where no iteration was clean.
  const auto if_clean = [&](Json value) { return v.clean() ? std::move(value) : Json(nullptr); };
  const auto if_known = [&](Json value) {
    return v.measured.knows_memory ? if_clean(std::move(value)) : Json(nullptr);
  };
  const auto memory = v.memory_verdict();
  Json devices = Json::array();
  for (std::size_t slot = 0; slot < p.memory.size(); ++slot) {
    const DeviceMetrics& a = p.metrics.devices[slot];
    const DeviceMetrics& b = m.metrics.devices[slot];
    devices.push_back(
        {{"device", p.graph.devices[slot].value},
         {"busy_s", pair(seconds(a.busy), if_clean(seconds(b.busy)))},
         {"idle_s", pair(seconds(a.idle), if_clean(seconds(b.idle)))},
         {"peak_memory_bytes",
          pair(p.memory[slot].peak.sum().count, if_known(m.memory[slot].peak.sum().count))},
         {"peak_memory_op", pair(p.memory[slot].peak_op, if_known(m.memory[slot].peak_op))}});
  }
  const auto throughput = [](const Outcome& o) {
    return o.throughput_samples_per_s ? Json(*o.throughput_samples_per_s) : Json(nullptr);
  };
  return {
      {"scenario", p.setup.name},
      {"overrides", point.overrides},
      {"schedule", p.setup.schedule.name},
      {"stages", p.setup.partition.stages.size()},
      {"device_count", p.graph.slots()},
      {"micro_batches", p.setup.micro_batches},
      {"slices", p.setup.slices},
      {"verdict", name(v.verdict)},
      {"error", if_clean(v.error)},
      {"noise", if_clean(v.noise())},
      {"iteration_time_s", pair(v.predicted_s(), if_clean(v.measured_s()))},
      {"disturbed_iteration_time_s", v.clean() ? Json(nullptr) : Json(v.measured_s())},
      {"throughput_samples_per_s", pair(throughput(p), if_clean(throughput(m)))},
      {"bubble_fraction", pair(p.metrics.bubble_fraction(), if_clean(m.metrics.bubble_fraction()))},
      {"idle_by_cause_s", pair(idle(p), if_clean(idle(m)))},
      {"timed_again", v.again_s ? Json{{"iteration_time_s", *v.again_s},
                                       {"error", if_clean(v.again_error().value_or(0))}}
                                : Json(nullptr)},
      {"error_by_cause_s",
       if_clean({{"profile", v.again_s ? Json(v.shares.profile_s) : Json(nullptr)},
                 {"compute", v.shares.compute_s},
                 {"transfer", v.shares.transfer_s},
                 {"hand_over", v.shares.hand_over_s},
                 {"waiting", v.shares.waiting_s},
                 {"telling", v.measured.traced_s ? Json(v.shares.telling_s) : Json(nullptr)}})},
      {"op_start_error_s", if_clean({{"median", v.starts.median_s},
                                     {"p95", v.starts.p95_s},
                                     {"most", v.starts.max_s},
                                     {"worst_op", v.starts.worst}})},
      {"critical_path_agreement", if_clean(v.critical_path_agreement)},
      {"memory", memory ? if_clean(name(*memory)) : Json(nullptr)},
      {"notes", p.setup.notes},
      {"devices", std::move(devices)},
      {"measured", measured(v.measured)}};
}

}  // namespace

std::string to_json(const RealRun& run, const std::string& version) {
  Json json = Json::parse(to_json(run.outcome, version));
  json["measured"] = measured(run);
  return json.dump(1) + '\n';
}

std::string to_json(const std::vector<ValidationPoint>& points, const std::string& version) {
  Json all = Json::array();
  for (const ValidationPoint& point : points) all.push_back(point_json(point));
  Json verdicts;
  for (const Verdict verdict :
       {Verdict::same, Verdict::close, Verdict::off, Verdict::inconclusive}) {
    verdicts[std::string(name(verdict))] = std::count_if(
        points.begin(), points.end(),
        [&](const ValidationPoint& point) { return point.validation.verdict == verdict; });
  }
  const Ranking ranking = rank(points);
  const RealRun& run = points.front().validation.measured;
  const Json json = {{"schema_version", 1},
                     {"tool", {{"name", "plumbline"}, {"version", version}}},
                     {"backend", run.backend},
                     {"tolerance", points.front().validation.tolerance},
                     {"verdict", name(verdict_on(points))},
                     {"verdicts", std::move(verdicts)},
                     {"points", std::move(all)},
                     {"ranking",
                      {{"pairs", ranking.pairs},
                       {"equal", ranking.equal},
                       {"ties", ranking.ties},
                       {"right", ranking.right},
                       {"wrong", ranking.wrong},
                       {"kendall_tau", ranking.tau() ? Json(*ranking.tau()) : Json(nullptr)}}}};
  return json.dump(1) + '\n';
}

}  // namespace plumbline
