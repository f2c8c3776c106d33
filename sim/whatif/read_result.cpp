// The results of earlier runs, read back to be compared.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/whatif/bill_json.h"
#include "sim/whatif/compare.h"

namespace plumbline {
namespace {

using Json = nlohmann::ordered_json;

/// A strict reader of the keys of a result. It records keys that are missing or of a wrong type.
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

/// Reads the interval of the iteration time, which only some results have.
void read_interval(ResultReader& reader, const Json& json, ComparedRun& run) {
  if (!json.contains("iteration_time_interval_s")) return;
  const Json& interval = json["iteration_time_interval_s"];
  run.likely_time = TimeRange{reader.number(interval, "low"), reader.number(interval, "high")};
  if (interval.contains("setting")) run.setting = reader.text(interval, "setting");
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
  if (json.contains("model")) run.model = reader.text(json, "model");
  if (json.contains("slices")) run.slices = std::max<std::int64_t>(1, reader.count(json, "slices"));
  if (json.contains("model_flops_utilization"))
    run.model_flops_utilization = reader.number_or_null(json, "model_flops_utilization");
  if (json.contains("sent_in_groups_fraction"))
    run.sent_in_groups_fraction = reader.number_or_null(json, "sent_in_groups_fraction");
  read_interval(reader, json, run);
  try {
    run.bill = read_bill(json);
  } catch (const Json::exception&) {
    missing.emplace_back("cost");
  }
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
  run.flushes = !steady && !(json.contains("flush") && json["flush"] == "none");
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
  if (run.likely_time && run.likely_time->low_s > run.likely_time->high_s) {
    return input_error(whole,
                       "no result: 'low' of its iteration_time_interval_s is larger than 'high'",
                       "a result is what simulate --json or run --json writes");
  }
  return run;
}

}  // namespace plumbline
