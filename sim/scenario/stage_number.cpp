// Compares the written stages with the devices and the stages that the schedule puts on each.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/stage_number.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <tuple>

namespace plumbline {
namespace {

/// A key that gives the number of stages.
struct WrittenStages {
  std::int64_t count = 0;
  std::string key;
  Mark mark;
};

std::optional<WrittenStages> written_stages(const Plan& plan) {
  const auto of = [](std::size_t count) { return static_cast<std::int64_t>(count); };
  if (plan.stages) return WrittenStages{plan.stages->value, "plan.stages", plan.stages->mark};
  if (const auto entries = plan.written_stages())
    return WrittenStages{of(*entries), "plan.partition", plan.partition_mark};
  if (plan.replicas)
    return WrittenStages{of(plan.replicas->value.size()), "plan.replicas", plan.replicas->mark};
  if (plan.devices)
    return WrittenStages{of(plan.devices->value.size()), "plan.devices", plan.devices->mark};
  return std::nullopt;
}

/// The stages per device and the number of devices in words: "one on each of 4 devices".
std::string spread_text(std::int64_t stages, std::int64_t devices, std::int64_t copies) {
  return fmt::format("{} on each of {} device{}{}",
                     stages == devices ? "one" : std::to_string(stages / devices), devices,
                     devices == 1 ? "" : "s", copies > 1 ? " of each copy" : "");
}

/// A number of stages to be raised, from `from` to to().
struct Raise {
  WrittenStages from;
  std::int64_t devices = 0;  ///< Devices of one copy that hold stages.
  std::int64_t chunks = 0;

  std::int64_t to() const { return devices * chunks; }
};

/// The reason for raising the stages; `schedule` is "the schedule", or names it.
std::string reason(const Raise& raise, const Scenario& scenario, std::string_view schedule) {
  const bool is_list = raise.from.key != "plan.stages";
  return fmt::format("{} {} {}{}, {}; {} puts {} on each (schedule.chunks)", raise.from.key,
                     is_list ? "has" : "is", raise.from.count, is_list ? " entries" : "",
                     spread_text(raise.from.count, raise.devices, scenario.copies), schedule,
                     raise.chunks);
}

std::string named_schedule(const Scenario& scenario) {
  return fmt::format("the schedule '{}'", scenario.schedule.rule->name);
}

/// Adds a note on the result of `data_parallel: fill`, as the number of devices of a copy that the
/// written stages were meant for is unknown.
void note_filled(const WrittenStages& written, std::int64_t devices, Scenario& scenario) {
  const std::int64_t chunks = scenario.schedule.chunks;
  const std::int64_t deeper = devices * chunks;
  scenario.notes.push_back(fmt::format(
      "plan.data_parallel: fill makes {} copies of {} device{}, with {} of the {} stages on each "
      "(schedule.chunks){}",
      scenario.copies, devices, devices == 1 ? "" : "s", chunks, written.count,
      scenario.copies % chunks == 0 &&
              written.count * chunks <= static_cast<std::int64_t>(scenario.model->graph.size())
          ? fmt::format("; plan.stages: {} makes {} of {}", written.count * chunks,
                        scenario.copies / chunks, deeper)
          : ""));
}

/// Errors: a list with an entry for each stage, which cannot be extended to the raised stages.
std::optional<Diagnostic> check_lists(const Raise& raise, const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  const auto refused = [&](const Mark& mark, std::string help) {
    return input_error(
        mark,
        fmt::format("{}: {} stages", reason(raise, scenario, named_schedule(scenario)), raise.to()),
        std::move(help));
  };
  const std::string fewer =
      fmt::format("; for {} stages on fewer devices, cluster.devices: {}", raise.from.count,
                  raise.from.count / raise.chunks * scenario.copies);
  const bool may_be_fewer = raise.from.count % raise.chunks == 0;
  if (const auto entries = plan.written_stages();
      entries && static_cast<std::int64_t>(*entries) != raise.to()) {
    return refused(plan.partition_mark,
                   fmt::format("a list of {}, or plan.partition: even or balanced{}", raise.to(),
                               may_be_fewer ? fewer : ""));
  }
  for (const auto& [mark, key, size] :
       {std::tuple{plan.replicas ? plan.replicas->mark : Mark{}, "plan.replicas",
                   plan.replicas ? plan.replicas->value.size() : 0},
        std::tuple{plan.devices ? plan.devices->mark : Mark{}, "plan.devices",
                   plan.devices ? plan.devices->value.size() : 0}}) {
    if (size > 0 && static_cast<std::int64_t>(size) != raise.to())
      return refused(mark, fmt::format("leave {} out: the schedule places its stages itself", key));
  }
  return std::nullopt;
}

/// Errors: fewer layers than stages.
std::optional<Diagnostic> check_few_layers(const Raise& raise, const Scenario& scenario) {
  const auto layers = static_cast<std::int64_t>(scenario.model->graph.size());
  if (raise.to() <= layers) return std::nullopt;
  const std::int64_t max_chunks = layers / raise.devices;
  const std::int64_t max_devices = layers / raise.chunks;
  std::string help = "a schedule with one stage on each device";
  if (max_chunks > 1 && max_chunks >= scenario.schedule.chunk_rule()->min_chunks) {
    help = fmt::format("schedule.chunks: {}, or {}", max_chunks, help);
  } else if (max_devices > 0) {
    help = fmt::format("plan.stages: {}, which leaves {} of {} devices idle; or {}", max_devices,
                       raise.devices - max_devices, raise.devices, help);
  }
  return input_error(raise.from.mark,
                     fmt::format("{}: {} stages, but the model has {} layer{}",
                                 reason(raise, scenario, named_schedule(scenario)), raise.to(),
                                 layers, layers == 1 ? "" : "s"),
                     std::move(help));
}

}  // namespace

std::optional<Diagnostic> resolve_stage_number(Scenario& scenario) {
  const std::int64_t chunks = scenario.schedule.chunks;
  Plan& plan = scenario.plan;
  if (!scenario.schedule.chunk_rule() || chunks == 1 || plan.is_planned()) return std::nullopt;
  const auto written = written_stages(plan);
  if (!written) return std::nullopt;
  const bool divides = written->count % chunks == 0;
  if (!scenario.cluster_given) {
    if (divides) {
      scenario.notes.push_back(fmt::format(
          "cluster.devices is not given: {} stages are on {} device{}, as the schedule puts {} on "
          "each (schedule.chunks)",
          written->count, written->count / chunks, written->count == chunks ? "" : "s", chunks));
    }
    return std::nullopt;
  }
  const std::int64_t devices = scenario.cluster.device_count() / scenario.copies;
  if (plan.fills_cluster) {  // the number of devices follows from the stages, so no device is idle
    if (divides) note_filled(*written, devices, scenario);
    return std::nullopt;
  }
  if (devices == 0 || written->count >= devices * chunks) return std::nullopt;
  const Raise raise{*written, std::min(written->count, devices), chunks};
  if (written->count % raise.devices != 0) {
    if (divides) {
      scenario.notes.push_back(fmt::format(
          "{} stages, {} on each device (schedule.chunks), leave {} of {} devices{} idle; "
          "plan.stages: {} would use all",
          written->count, chunks, devices - written->count / chunks, devices,
          scenario.copies > 1 ? " of each copy" : "", devices * chunks));
    }
    return std::nullopt;
  }
  if (auto refused = check_lists(raise, scenario)) return refused;
  if (!plan.stages) return std::nullopt;  // the list has the right length already
  if (auto refused = check_few_layers(raise, scenario)) return refused;
  scenario.notes.push_back(
      fmt::format("{}: {} stages are taken", reason(raise, scenario, "the schedule"), raise.to()));
  plan.stages_raised_from = plan.stages->value;
  plan.stages->value = raise.to();
  return std::nullopt;
}

}  // namespace plumbline
