// The registries as JSON.
//
// SPDX-License-Identifier: MIT
#include "cli/list_json.h"

#include <nlohmann/json.hpp>

#include "calibrate/cpu/layer.h"
#include "calibrate/cuda/check.h"
#include "models/hardware/device_presets.h"
#include "schedules/generators/generators.h"

namespace plumbline {
namespace {

using Json = nlohmann::ordered_json;

std::string document(const char* what, Json entries) {
  const Json whole = {{"schema_version", 1}, {what, std::move(entries)}};
  return whole.dump(1) + '\n';
}

}  // namespace

std::optional<std::string> why_unavailable(const BackendName& backend) {
  if (backend.name == "cpu" && cpu_library().empty())
    return "this build has no cpu backend: it was made without oneDNN";
  if (backend.name != "cuda") return std::nullopt;
  const auto refused = cuda_is_missing();
  return refused ? std::optional(refused->message) : std::nullopt;
}

std::string schedules_json() {
  Json entries = Json::array();
  for (const ScheduleRule& rule : schedule_rules()) {
    entries.push_back({{"name", rule.name},
                       {"summary", rule.summary},
                       {"order", rule.order},
                       {"asynchronous", rule.asynchronous},
                       {"takes_warm_up", rule.takes_warm_up},
                       {"whole_model", rule.whole_model},
                       {"limits", limits_of(rule)},
                       {"bubble", rule.bubble},
                       {"in_flight", rule.in_flight},
                       {"makespan", rule.makespan},
                       {"makespan_elsewhere", nullptr},
                       {"source", rule.source}});
    if (!rule.elsewhere.empty()) entries.back()["makespan_elsewhere"] = rule.elsewhere;
  }
  return document("schedules", std::move(entries));
}

std::string backends_json() {
  Json entries = Json::array();
  for (const BackendName& backend : kBackends) {
    const auto reason = why_unavailable(backend);
    entries.push_back({{"name", backend.name},
                       {"summary", backend.text},
                       {"available", !reason},
                       {"reason", nullptr}});
    if (reason) entries.back()["reason"] = *reason;
  }
  return document("backends", std::move(entries));
}

std::string presets_json() {
  Json entries = Json::array();
  for (const DevicePreset& preset : device_presets()) {
    Json peaks = Json::object();
    for (const std::string_view format : kNumberFormats) {
      const auto peak = preset.peak(number_format(format));
      peaks[std::string(format)] = peak ? Json(peak->count) : Json(nullptr);
    }
    entries.push_back({{"name", preset.name},
                       {"peak_flops_per_s", std::move(peaks)},
                       {"memory_bytes", preset.memory.count},
                       {"memory_bandwidth_bytes_per_s", preset.memory_bandwidth.count},
                       {"link_bandwidth_bytes_per_s", preset.link_bandwidth.count},
                       {"link", preset.link},
                       {"source", preset.source},
                       {"memory_source", preset.memory_source}});
  }
  return document("presets", std::move(entries));
}

}  // namespace plumbline
