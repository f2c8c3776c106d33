// Comparisons as JSON, and the results of earlier runs read back.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_value.h"
#include "sim/prediction/uncertainty.h"
#include "sim/whatif/compare.h"
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

Json shared_to_json(const std::vector<SharedText>& texts, const std::vector<ComparedRun>& runs) {
  Json all = Json::array();
  for (const SharedText& one : texts) {
    Json titles = Json::array();
    for (const std::size_t run : one.runs) titles.push_back(runs[run].title);
    all.push_back({{"text", one.text}, {"runs", std::move(titles)}});
  }
  return all;
}

/// Reads the keys of a result strictly. Missing keys and wrong types are recorded.
class ResultReader {
 public:
  explicit ResultReader(std::vector<std::string>& missing) : missing_(missing) {}

  const Json& at(const Json& object, const std::string& key) {
    static const Json nothing;
    if (object.is_object() && object.contains(key)) return object[key];
    missing_.push_back(key);
    return nothing;
  }
  double number(const Json& object, const std::string& key) {
    const Json& value = at(object, key);
    if (value.is_number()) return value.get<double>();
    note(value, key);
    return 0;
  }
  std::int64_t count(const Json& object, const std::string& key) {
    const Json& value = at(object, key);
    if (value.is_number_integer()) return value.get<std::int64_t>();
    note(value, key);
    return 0;
  }
  std::string text(const Json& object, const std::string& key) {
    const Json& value = at(object, key);
    if (value.is_string()) return value.get<std::string>();
    note(value, key);
    return "";
  }
  std::optional<double> number_or_null(const Json& object, const std::string& key) {
    if (at(object, key).is_null()) return std::nullopt;
    return number(object, key);
  }

 private:
  void note(const Json& value, const std::string& key) {
    if (!value.is_null() || missing_.empty() || missing_.back() != key) missing_.push_back(key);
  }

  std::vector<std::string>& missing_;
};

void read_devices(ResultReader& reader, const Json& json, double mini_batches, ComparedRun& run) {
  const Json& devices = reader.at(json, "devices");
  if (!devices.is_array() || devices.empty()) return;
  const double parts = static_cast<double>(devices.size()) * mini_batches;
  for (const Json& device : devices) {
    std::vector<std::uint32_t> stages;
    for (const Json& stage : reader.at(device, "stages")) {
      if (stage.is_number_unsigned()) stages.push_back(stage.get<std::uint32_t>());
    }
    run.devices.push_back({static_cast<std::uint32_t>(reader.count(device, "device")),
                           std::move(stages), reader.count(device, "peak_memory_bytes"),
                           reader.count(device, "peak_in_flight")});
    run.busy_s += reader.number(device, "busy_s") / parts;
    const Json& idle = reader.at(device, "idle_by_cause_s");
    for (std::size_t cause = 0; cause < kIdleCauseCount; ++cause)
      run.idle_s[cause] += reader.number(idle, std::string(name(kIdleCauses[cause]))) / parts;
  }
}

/// The texts of a list; other items are left out.
std::vector<std::string> texts_of(ResultReader& reader, const Json& json, const std::string& key) {
  std::vector<std::string> texts;
  if (const Json& list = reader.at(json, key); list.is_array()) {
    for (const Json& one : list) {
      if (one.is_string()) texts.push_back(one.get<std::string>());
    }
  }
  return texts;
}

}  // namespace

Result<ComparedRun> read_result(const std::shared_ptr<const Source>& source, std::string title) {
  const Mark whole{source, 0, 0, 1};
  Json json;
  try {
    json = Json::parse(source->text);
  } catch (const Json::parse_error& error) {
    return input_error(whole,
                       fmt::format("no JSON: it breaks off or goes wrong at byte {}", error.byte),
                       "a result is what simulate --json or run --json writes");
  }
  const Json version = json.is_object() ? json.value("schema_version", Json()) : Json();
  if (version != 1) {
    return input_error(whole,
                       version.is_null()
                           ? std::string("no result: it has no schema_version")
                           : fmt::format("schema_version is {}, where 1 is known", version.dump()),
                       "a result is what simulate --json or run --json writes");
  }
  std::vector<std::string> missing;
  ResultReader reader(missing);
  ComparedRun run;
  run.title = std::move(title);
  run.schedule = reader.text(json, "schedule");
  run.stages = reader.count(json, "stages");
  run.micro_batches = reader.count(json, "micro_batches");
  run.iteration_time_s = reader.number(json, "iteration_time_s");
  run.throughput_samples_per_s = reader.number_or_null(json, "throughput_samples_per_s");
  // Older results lack these keys.
  if (json.contains("slices")) run.slices = std::max<std::int64_t>(1, reader.count(json, "slices"));
  if (json.contains("model_flops_utilization"))
    run.model_flops_utilization = reader.number_or_null(json, "model_flops_utilization");
  if (json.contains("sent_in_groups_fraction"))
    run.sent_in_groups_fraction = reader.number_or_null(json, "sent_in_groups_fraction");
  run.communication_stall_fraction = reader.number(json, "communication_stall_fraction");
  read_devices(reader, json, static_cast<double>(reader.count(json, "mini_batches")), run);
  const auto steady = reader.number_or_null(json, "steady_bubble_fraction");
  run.bubble_fraction = steady ? *steady : reader.number(json, "bubble_fraction");
  if (steady) {
    run.idle_s = {};
    run.idle_s[static_cast<std::size_t>(IdleCause::dependency)] = run.iteration_time_s * *steady;
    run.busy_s = run.iteration_time_s * (1 - *steady);
  }
  if (const Json& fits = reader.at(json, "fits"); fits.is_boolean()) run.fits = fits.get<bool>();
  if (json.contains("devices_in_all")) run.devices_in_all = reader.count(json, "devices_in_all");
  if (json.contains("layers")) run.layers = reader.count(json, "layers");
  if (json.contains("parameters_bytes") && !json["parameters_bytes"].is_null())
    run.parameters_bytes = reader.count(json, "parameters_bytes");
  if (json.contains("model_flops") && run.samples() > 0 && run.throughput_samples_per_s) {
    if (const auto flops = reader.number_or_null(json, "model_flops"))
      run.model_flops_per_sample = *flops / run.samples();
  }
  run.flushes = !steady;
  run.estimated = texts_of(reader, json, "estimated");
  if (json.contains("notes")) run.notes = texts_of(reader, json, "notes");
  run.devices_used = json.contains("devices_used") ? reader.count(json, "devices_used")
                                                   : static_cast<std::int64_t>(run.devices.size());
  if (run.devices_used < 1 && missing.empty()) missing.emplace_back("devices_used");
  if (run.devices.empty() && missing.empty()) missing.emplace_back("devices");
  if (!missing.empty()) {
    return input_error(
        whole, fmt::format("no result: '{}' is missing or of another type", missing.front()),
        "a result is what simulate --json or run --json writes");
  }
  return run;
}

std::string to_json(const std::vector<ComparedRun>& runs, const std::string& version,
                    const std::vector<RefusedRun>& refused) {
  Json keys = Json::array();
  for (const DifferingKey& one : differing_keys(runs))
    keys.push_back({{"key", one.key}, {"values", one.values}});
  Json cannot_run = Json::array();
  for (const RefusedRun& one : refused)
    cannot_run.push_back({{"title", one.title}, {"reason", one.reason}});
  Json objects = Json::array();
  for (const ComparedRun& run : runs) objects.push_back(to_object(run, runs.front()));
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
