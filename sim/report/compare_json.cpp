// Comparisons as JSON.
//
// SPDX-License-Identifier: MIT
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_value.h"
#include "sim/prediction/uncertainty.h"
#include "sim/report/compare_report.h"
#include "sim/whatif/bill_json.h"
#include "sim/whatif/likeness.h"

namespace plumbline {
namespace {

using Json = nlohmann::ordered_json;

Json percentiles(const Uncertainty& u) {
  return {{"samples", u.iteration_times_s.size()},
          {"p5", u.iteration_time_s(0.05)},
          {"p50", u.iteration_time_s(0.5)},
          {"p95", u.iteration_time_s(0.95)}};
}

Json difference(double value, double first) {
  return first != 0 ? Json(value / first - 1) : Json(nullptr);
}

Json to_object(const ComparedRun& run, const ComparedRun& first) {
  Json idle;
  for (std::size_t cause = 0; cause < kIdleCauseCount; ++cause)
    idle[std::string(name(kIdleCauses[cause]))] = run.idle_s[cause];
  Json devices = Json::array();
  for (const ComparedDevice& device : run.devices) {
    devices.push_back({{"device", device.device},
                       {"peak_memory_bytes", device.peak_memory_bytes},
                       {"peak_in_flight", device.peak_in_flight}});
  }
  const auto both = [](const ComparedRun& r) { return r.outcome && r.outcome->uncertainty; };
  return {{"title", run.title},
          {"schedule", run.schedule},
          {"stages", run.stages},
          {"device_count", run.devices.size()},
          {"micro_batches", run.micro_batches},
          {"slices", run.slices},
          {"iteration_time_s", run.iteration_time_s},
          {"throughput_samples_per_s", or_null(run.throughput_samples_per_s)},
          {"devices_used", run.devices_used},
          {"devices_in_all", or_null(run.devices_in_all)},
          {"copies", or_null(run.copies)},
          {"mini_batch_samples",
           run.throughput_samples_per_s ? Json(std::llround(run.samples())) : Json(nullptr)},
          {"layers", or_null(run.layers)},
          {"throughput_per_device_samples_per_s", or_null(run.throughput_per_device())},
          {"model_flops_utilization", or_null(run.model_flops_utilization)},
          {"bubble_fraction", run.bubble_fraction},
          {"communication_stall_fraction", run.communication_stall_fraction},
          {"sent_in_groups_fraction", or_null(run.sent_in_groups_fraction)},
          {"busy_per_device_s", run.busy_s},
          {"idle_per_device_s", std::move(idle)},
          {"peak_memory_bytes", run.peak_memory_bytes()},
          {"devices", std::move(devices)},
          {"fits", or_null(run.fits)},
          {"uncertainty", both(run) ? percentiles(*run.outcome->uncertainty) : Json(nullptr)},
          {"against_first",
           {{"iteration_time", difference(run.iteration_time_s, first.iteration_time_s)},
            {"throughput", difference(run.speed(), first.speed())},
            {"peak_memory", difference(static_cast<double>(run.peak_memory_bytes()),
                                       static_cast<double>(first.peak_memory_bytes()))},
            {"probability_faster", both(run) && both(first)
                                       ? Json(probability_faster(*run.outcome, *first.outcome))
                                       : Json(nullptr)}}},
          {"estimated", run.estimated},
          {"notes", run.notes}};
}

/// Adds the interval that a share of kErrorCoverage of such runs lie in, if it is known.
void add_likely_time(const ComparedRun& run, Json& json) {
  if (const auto& likely = run.likely_time)
    json["iteration_time_interval_s"] = {{"low", likely->low_s}, {"high", likely->high_s}};
}

Json shared_to_json(const std::vector<SharedText>& texts, const std::vector<ComparedRun>& runs) {
  Json all = Json::array();
  for (const SharedText& one : texts) {
    Json titles = Json::array();
    for (const std::size_t run : one.runs) titles.push_back(runs[run].title);
    all.push_back({{"text", one.text}, {"runs", std::move(titles)}});
  }
  return all;
}

}  // namespace

std::string to_json(const std::vector<ComparedRun>& runs, const std::string& version,
                    const std::vector<RefusedRun>& refused) {
  Json keys = Json::array();
  for (const DifferingKey& one : differing_keys(runs))
    keys.push_back({{"key", one.key}, {"values", one.values}});
  Json cannot_run = Json::array();
  for (const RefusedRun& one : refused)
    cannot_run.push_back({{"title", one.title}, {"reason", one.reason}});
  Json objects = Json::array();
  for (const ComparedRun& run : runs) {
    objects.push_back(to_object(run, runs.front()));
    add_likely_time(run, objects.back());
    add_bill(run.bill, objects.back());
  }
  const Json json = {{"schema_version", 1},
                     {"tool", {{"name", "plumbline"}, {"version", version}}},
                     {"runs", std::move(objects)},
                     {"keys_that_differ", std::move(keys)},
                     {"estimated", shared_to_json(shared_estimates(runs), runs)},
                     {"notes", shared_to_json(shared_notes(runs), runs)},
                     {"not_alike", unlikenesses(runs)},
                     {"cannot_run", std::move(cannot_run)},
                     {"verdict", verdict(runs, refused)}};
  return json.dump(1) + '\n';
}

}  // namespace plumbline
