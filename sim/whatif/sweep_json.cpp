// The rows of sweeps as JSON, and results of sweeps read back.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_value.h"
#include "base/quantity.h"
#include "sim/scenario/axes.h"
#include "sim/whatif/bill_json.h"
#include "sim/whatif/kept_lines.h"
#include "sim/whatif/sweep_file.h"
#include "sim/whatif/sweep_numbers.h"

namespace plumbline {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
std::optional<T> optional_of(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional<T>(json.get<T>());
}

/// A value as it was written: whole numbers as numbers, other values as text.
Json value_json(const std::string& value) {
  const auto number = parse_count(value);
  return number.value ? Json(*number.value) : Json(value);
}

std::string value_text(const Json& json) {
  return json.is_number() ? std::to_string(json.get<std::int64_t>()) : json.get<std::string>();
}

SweepResult result_of(const Json& json) {
  SweepResult result;
  result.scenario = json.at("scenario").get<std::string>();
  result.file = json.at("scenario_file").get<std::string>();
  result.fingerprint = json.at("fingerprint").get<std::string>();
  result.points = json.at("points").get<std::uint64_t>();
  result.shard = shard_of(json.at("shard"));
  for (const auto& [key, values] : json.at("axes").items()) {
    SweepAxis& axis = result.axes.emplace_back(SweepAxis{key, {}});
    for (const Json& value : values) axis.values.push_back(value_text(value));
  }
  for (const Json& row : json.at("rows")) result.rows.push_back(read_row(row));
  return result;
}

/// Whether the result meets the invariants that the rest of the program requires.
bool is_sound(const SweepResult& result) {
  double points = 1;
  for (const SweepAxis& axis : result.axes) points *= static_cast<double>(axis.values.size());
  if (points != static_cast<double>(result.points) || result.points > kMaxCombinations)
    return false;
  const auto& shard = result.shard;
  if (shard && (shard->index < 1 || shard->index > shard->count || shard->count > kMaxCombinations))
    return false;
  return std::all_of(result.rows.begin(), result.rows.end(), [&](const SweepRow& row) {
    return row.point < result.points && is_sound(row);
  });
}

}  // namespace

Json axes_json(const std::vector<SweepAxis>& axes) {
  Json json = Json::object();
  for (const SweepAxis& axis : axes) {
    Json& values = json[axis.key] = Json::array();
    for (const std::string& value : axis.values) values.push_back(value_json(value));
  }
  return json;
}

void add_numbers(const std::optional<SweepNumbers>& numbers, Json& json) {
  const auto number = [&](const char* key, auto&& of) {
    json[key] = numbers ? Json(of(*numbers)) : Json(nullptr);
  };
  number("iteration_time_s", [](const SweepNumbers& n) { return n.iteration_time_s; });
  number("throughput_samples_per_s",
         [](const SweepNumbers& n) { return or_null(n.throughput_samples_per_s); });
  number("devices_used", [](const SweepNumbers& n) { return n.devices; });
  number("stages", [](const SweepNumbers& n) { return n.stages; });
  number("stages_raised_from", [](const SweepNumbers& n) { return or_null(n.stages_raised_from); });
  number("throughput_per_device_samples_per_s",
         [](const SweepNumbers& n) { return or_null(n.throughput_per_device()); });
  number("model_flops_per_device_per_s",
         [](const SweepNumbers& n) { return or_null(n.model_flops_per_device_per_s); });
  number("model_flops_utilization",
         [](const SweepNumbers& n) { return or_null(n.model_flops_utilization); });
  number("iteration_time_p5_s",
         [](const SweepNumbers& n) { return or_null(n.iteration_time_p5_s); });
  number("iteration_time_p50_s",
         [](const SweepNumbers& n) { return or_null(n.iteration_time_p50_s); });
  number("iteration_time_p95_s",
         [](const SweepNumbers& n) { return or_null(n.iteration_time_p95_s); });
  number("bubble_fraction", [](const SweepNumbers& n) { return n.bubble_fraction; });
  number("bubble_overhead", [](const SweepNumbers& n) { return n.bubble_overhead; });
  number("steady_bubble_fraction",
         [](const SweepNumbers& n) { return or_null(n.steady_bubble_fraction); });
  number("formula_bubble_fraction",
         [](const SweepNumbers& n) { return or_null(n.formula_bubble_fraction); });
  number("communication_stall_fraction",
         [](const SweepNumbers& n) { return n.communication_stall_fraction; });
  number("sent_in_groups_fraction",
         [](const SweepNumbers& n) { return or_null(n.sent_in_groups_fraction); });
  number("peak_memory_bytes", [](const SweepNumbers& n) { return n.peak_memory_bytes; });
  number("peak_memory_device", [](const SweepNumbers& n) { return n.peak_memory_device; });
  number("fits", [](const SweepNumbers& n) { return or_null(n.fits); });
  number("memory_limit_bytes", [](const SweepNumbers& n) { return or_null(n.memory_limit_bytes); });
  number("devices_without_stage", [](const SweepNumbers& n) { return n.devices_without_stage; });
  if (numbers) add_bill(numbers->bill, json);
}

void add_row(const SweepRow& row, Json& json) {
  json["point"] = row.point;
  add_numbers(row.numbers, json);
  json["estimated"] = row.estimated;
  json["reason"] = row.reason.empty() ? Json(nullptr) : Json(row.reason);
}

SweepRow read_row(const Json& json) {
  SweepRow row;
  row.point = json.at("point").get<std::uint64_t>();
  row.reason = optional_of<std::string>(json.at("reason")).value_or("");
  row.estimated = json.at("estimated").get<std::vector<std::string>>();
  if (json.at("iteration_time_s").is_null()) return row;
  SweepNumbers& n = row.numbers.emplace();
  n.iteration_time_s = json.at("iteration_time_s").get<double>();
  n.throughput_samples_per_s = optional_of<double>(json.at("throughput_samples_per_s"));
  n.devices = json.at("devices_used").get<std::int64_t>();
  n.stages = json.value("stages", n.stages);
  if (json.contains("stages_raised_from"))
    n.stages_raised_from = optional_of<std::int64_t>(json["stages_raised_from"]);
  n.model_flops_per_device_per_s = optional_of<double>(json.at("model_flops_per_device_per_s"));
  n.model_flops_utilization = optional_of<double>(json.at("model_flops_utilization"));
  n.iteration_time_p5_s = optional_of<double>(json.at("iteration_time_p5_s"));
  n.iteration_time_p50_s = optional_of<double>(json.at("iteration_time_p50_s"));
  n.iteration_time_p95_s = optional_of<double>(json.at("iteration_time_p95_s"));
  n.bubble_fraction = json.at("bubble_fraction").get<double>();
  n.bubble_overhead = json.at("bubble_overhead").get<double>();
  n.steady_bubble_fraction = optional_of<double>(json.at("steady_bubble_fraction"));
  n.formula_bubble_fraction = optional_of<double>(json.at("formula_bubble_fraction"));
  n.communication_stall_fraction = json.at("communication_stall_fraction").get<double>();
  n.sent_in_groups_fraction = optional_of<double>(json.at("sent_in_groups_fraction"));
  n.peak_memory_bytes = json.at("peak_memory_bytes").get<std::int64_t>();
  n.peak_memory_device = json.at("peak_memory_device").get<std::uint32_t>();
  n.fits = optional_of<bool>(json.at("fits"));
  n.memory_limit_bytes = optional_of<std::int64_t>(json.at("memory_limit_bytes"));
  n.devices_without_stage = json.at("devices_without_stage").get<std::uint32_t>();
  n.bill = read_bill(json);
  return row;
}

bool is_sound(const SweepRow& row) {
  return (row.numbers || !row.feasible()) && (!row.numbers || row.numbers->devices >= 1);
}

std::string row_json(const SweepResult& header, const SweepRow& row) {
  const std::vector<std::size_t> indices = header.values_at(row.point);
  Json overrides = Json::object();
  for (std::size_t i = 0; i < header.axes.size(); ++i)
    overrides[header.axes[i].key] = value_json(header.axes[i].values[indices[i]]);
  Json json = {{"point", row.point}, {"overrides", std::move(overrides)}};
  add_row(row, json);
  return in_a_line(json);
}

Result<SweepFile> parse_sweep_file(const std::shared_ptr<const Source>& source,
                                   const std::string& version) {
  try {
    const Json json = Json::parse(source->text);
    if (!is_of_kind(json, kSweepKind)) {
      return input_error({source}, "is no result of a sweep",
                         "plumbline sweep SCENARIO key=1,2 --json -o FILE writes one");
    }
    if (json.at("tool").at("version") != version)
      return other_version({source}, json, version, kSweepKind);
    SweepFile file{source, result_of(json)};
    if (is_sound(file.result)) return file;
  } catch (const Json::parse_error& error) {
    return input_error(mark_at(source, error.byte), "not valid JSON from here on",
                       "a sweep writes its file whole or not at all: this one was cut or changed");
  } catch (const Json::exception&) {  // reported below: a key is missing or of another type
  }
  return input_error({source},
                     "is a damaged result of a sweep: it lacks a key, or has values that do not "
                     "belong together",
                     "one that an earlier build wrote may lack what is new: sweep again");
}

std::string partial_header(const SweepResult& header, const std::string& version) {
  return kept_header({kSweepKind, header.fingerprint, header.shard}, version);
}

Result<PartialSweep> parse_partial(const std::shared_ptr<const Source>& source,
                                   const SweepResult& header, const std::string& version) {
  PartialSweep partial;
  std::vector<bool> seen(header.points, false);
  const auto kept =
      read_kept(source, {kSweepKind, header.fingerprint, header.shard}, version,
                [&](const Json& json) -> std::string {
                  SweepRow row = read_row(json);
                  const bool foreign = row.point >= header.points ||
                                       !header.shard.value_or(Shard{}).holds(row.point);
                  if (foreign || seen[row.point])
                    return fmt::format("the row of point {} {}", row.point,
                                       foreign ? "is not of this sweep" : "stands twice");
                  seen[row.point] = true;
                  partial.rows.push_back(std::move(row));
                  return "";
                });
  if (!kept) return kept.problems();
  partial.kept_bytes = *kept;
  return partial;
}

}  // namespace plumbline
