// From devices of stages to rows.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/sequence_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace plumbline {
namespace {

using DevicesOfStages = std::vector<std::vector<std::uint32_t>>;

/// The number of devices of one copy, if known.
std::optional<std::uint32_t> devices_of_copy(const Scenario& scenario) {
  if (!scenario.cluster_given || scenario.plan.fills_cluster) return std::nullopt;
  const auto copies = static_cast<std::uint32_t>(scenario.plan.data_parallel.value);
  return scenario.cluster.device_count() / std::max(copies, 1U);
}

/// The number of stages of a loop over the whole model; nothing if it is unknown.
std::optional<std::uint32_t> stages_of_loop(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  if (plan.stages) return static_cast<std::uint32_t>(plan.stages->value);
  if (const auto written = plan.written_stages()) return static_cast<std::uint32_t>(*written);
  if (plan.replicas) return static_cast<std::uint32_t>(plan.replicas->value.size());
  if (plan.devices) return static_cast<std::uint32_t>(plan.devices->value.size());
  if (!scenario.schedule.file->devices.empty())
    return static_cast<std::uint32_t>(scenario.schedule.file->devices.size());
  const auto devices = devices_of_copy(scenario);
  if (devices && *devices > 0) return devices;
  return std::nullopt;
}

/// Whether a stage is on the same device twice.
bool repeats_device(const DevicesOfStages& devices) {
  return std::any_of(devices.begin(), devices.end(), [](std::vector<std::uint32_t> of_stage) {
    std::sort(of_stage.begin(), of_stage.end());
    return std::adjacent_find(of_stage.begin(), of_stage.end()) != of_stage.end();
  });
}

DevicesOfStages devices_of_stages(Scenario& scenario, std::uint32_t stages) {
  const Plan& plan = scenario.plan;
  DevicesOfStages devices(stages);
  if (plan.devices && plan.devices->value.size() == stages) {
    for (std::uint32_t s = 0; s < stages; ++s) {
      for (const std::int64_t device : plan.devices->value[s])
        devices[s].push_back(static_cast<std::uint32_t>(device));
    }
    return devices;
  }
  if (scenario.schedule.file->devices.size() == stages) return scenario.schedule.file->devices;
  if (plan.replicas && plan.replicas->value.size() == stages) {
    std::uint32_t next = 0;
    for (std::uint32_t s = 0; s < stages; ++s) {
      for (std::int64_t r = 0; r < plan.replicas->value[s]; ++r) devices[s].push_back(next++);
    }
    return devices;
  }
  const auto available = devices_of_copy(scenario);
  const bool goes_round =
      available && *available > 0 && *available < stages && stages % *available == 0;
  for (std::uint32_t s = 0; s < stages; ++s) devices[s].push_back(goes_round ? s % *available : s);
  if (goes_round) {
    scenario.notes.push_back(
        fmt::format("schedule.file is a sequence, which does not say where its {} stages stand: "
                    "stage s on device s mod {} (plan.devices says otherwise)",
                    stages, *available));
  }
  return devices;
}

/// The devices as rows, numbered from 0 without gaps, in their order.
StageRows rows_of(const DevicesOfStages& devices) {
  std::vector<std::uint32_t> used;
  for (const auto& of_stage : devices) used.insert(used.end(), of_stage.begin(), of_stage.end());
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  StageRows rows(devices.size());
  for (std::uint32_t s = 0; s < devices.size(); ++s) {
    for (const std::uint32_t device : devices[s]) {
      rows.of(s).push_back(static_cast<std::uint32_t>(
          std::lower_bound(used.begin(), used.end(), device) - used.begin()));
    }
  }
  return rows;
}

}  // namespace

std::optional<Diagnostic> place_sequence(Scenario& scenario) {
  auto& file = scenario.schedule.file;
  if (!file || !file->is_sequence()) return std::nullopt;
  const bool is_loop = file->form == OrderForm::host_loop;
  const auto stages = is_loop ? stages_of_loop(scenario) : file->stages;
  if (!stages) {
    return input_error(scenario.schedule.name_mark,
                       "schedule.file is a loop over the whole model, and nothing says how many "
                       "stages it has",
                       "plan.stages, or cluster.devices");
  }
  DevicesOfStages devices = devices_of_stages(scenario, *stages);
  if (std::any_of(devices.begin(), devices.end(), [](const auto& of) { return of.empty(); }))
    return std::nullopt;  // errors of plan.devices are reported by its reader
  if (repeats_device(devices)) {
    if (scenario.plan.devices) return std::nullopt;
    return input_error(scenario.schedule.name_mark,
                       "schedule.file says '# plan.devices:' with a device twice for one stage",
                       "each device of a stage is another one, as in [[0, 1], [2, 3]]");
  }
  return place_sequence(*file, rows_of(devices));
}

}  // namespace plumbline
