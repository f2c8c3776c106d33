// Counting layers and devices.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "base/bug.h"
#include "models/profile/layer_units.h"
#include "sim/scenario/block_cut.h"

namespace plumbline {

std::string wrong_length(std::string_view key, std::size_t length, std::size_t stages) {
  return fmt::format("{} has length {}, but the number of stages is {}", key, length, stages);
}

std::uint32_t stage_count(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  if (scenario.schedule.whole_model()) return 1;
  if (scenario.schedule.file) return scenario.schedule.file->stages;
  const std::uint32_t chunks = scenario.schedule.chunks;
  if (plan.stages) return static_cast<std::uint32_t>(plan.stages->value);
  if (const auto written = plan.written_stages()) return static_cast<std::uint32_t>(*written);
  if (plan.replicas) return static_cast<std::uint32_t>(plan.replicas->value.size());
  if (plan.devices) return static_cast<std::uint32_t>(plan.devices->value.size());
  return chunks *
         std::max<std::uint32_t>(
             scenario.cluster.device_count() / static_cast<std::uint32_t>(scenario.copies), 1);
}

namespace {

using StageDevices = std::vector<std::vector<DeviceId>>;

/// `[[0], [1], [0], [1]]`, shortened if it is long.
std::string to_text_of(const StageDevices& devices) {
  constexpr std::size_t max = 8;
  std::vector<std::string> stages;
  for (std::size_t s = 0; s < std::min(devices.size(), max); ++s) {
    std::vector<std::uint32_t> numbers;
    for (const DeviceId device : devices[s]) numbers.push_back(device.value);
    stages.push_back(fmt::format("[{}]", fmt::join(numbers, ", ")));
  }
  return fmt::format("[{}{}]", fmt::join(stages, ", "), devices.size() > max ? ", ..." : "");
}

/// The devices of each stage of one copy, with the numbers they have if the plan gives none: 0, 1,
/// ... stage by stage, replica by replica. For an order from a file they are its rows. A schedule
/// with chunks places its stages itself.
StageDevices numbered_devices(const Scenario& scenario,
                              const std::vector<std::uint32_t>& replicas) {
  StageDevices devices(replicas.size());
  if (const auto& file = scenario.schedule.file) {
    for (std::uint32_t s = 0; s < replicas.size(); ++s) {
      for (const std::uint32_t row : file->rows.of(s)) devices[s].push_back({row});
    }
    return devices;
  }
  if (const ChunkRule* const rule = scenario.schedule.chunk_rule()) {
    const auto placed = placed_stages(rule->placement, chunk_shape(scenario, replicas.size()));
    for (std::size_t s = 0; s < replicas.size(); ++s) {
      for (const std::uint32_t device : placed[s]) devices[s].push_back({device});
    }
    return devices;
  }
  std::uint32_t next = 0;
  for (std::size_t s = 0; s < replicas.size(); ++s) {
    for (std::uint32_t r = 0; r < replicas[s]; ++r) devices[s].push_back({next++});
  }
  return devices;
}

/// Checks plan.devices against the numbers of stages, replicas and devices.
Result<StageDevices> given_devices(const Marked<std::vector<std::vector<std::int64_t>>>& given,
                                   const std::vector<std::uint32_t>& replicas,
                                   std::optional<std::uint32_t> available, std::int64_t copies) {
  if (given.value.size() != replicas.size()) {
    return input_error(given.mark,
                       wrong_length("plan.devices", given.value.size(), replicas.size()));
  }
  StageDevices devices;
  for (std::size_t s = 0; s < given.value.size(); ++s) {
    std::vector<DeviceId>& of_stage = devices.emplace_back();
    for (const std::int64_t device : given.value[s]) {
      if (available && device >= *available) {
        return input_error(
            given.mark,
            fmt::format("plan.devices puts stage {} on device {}, but the devices are 0 to {}", s,
                        device, *available - 1),
            copies == 1 ? ""
                        : fmt::format("device q here is devices {0}q to {0}q+{1} of the cluster, "
                                      "one for each of the {0} copies",
                                      copies, copies - 1));
      }
      const DeviceId id{static_cast<std::uint32_t>(device)};
      if (std::find(of_stage.begin(), of_stage.end(), id) != of_stage.end()) {
        return input_error(
            given.mark, fmt::format("plan.devices lists device {} twice for stage {}", device, s));
      }
      of_stage.push_back(id);
    }
    if (of_stage.size() != replicas[s]) {
      return input_error(
          given.mark,
          fmt::format("plan.devices lists {} devices for stage {}, which has {} replica{}",
                      of_stage.size(), s, replicas[s], replicas[s] == 1 ? "" : "s"));
    }
  }
  return devices;
}

/// The replicas that an order fixes for each stage: those of a file's rows, or of a schedule that
/// places stages itself. Nothing if the plan decides.
std::optional<std::vector<std::uint32_t>> own_replicas(const ScheduleChoice& choice,
                                                       std::uint32_t stages) {
  std::vector<std::uint32_t> replicas;
  if (choice.file) {
    for (std::uint32_t s = 0; s < stages; ++s) replicas.push_back(choice.file->rows.replicas(s));
    return replicas;
  }
  if (const ChunkRule* const rule = choice.chunk_rule())
    return std::vector<std::uint32_t>(stages, replicas_in(rule->placement));
  return std::nullopt;
}

/// Errors: plan.replicas that differ from the order's own.
std::optional<Diagnostic> check_replicas(const Marked<std::vector<std::int64_t>>& given,
                                         const ScheduleChoice& choice,
                                         const std::vector<std::uint32_t>& own) {
  if (std::equal(own.begin(), own.end(), given.value.begin(), given.value.end()))
    return std::nullopt;
  if (choice.file) {
    return input_error(given.mark, "plan.replicas differs from the rows of schedule.file",
                       "a stage has as many replicas as rows: leave plan.replicas out");
  }
  if (own.front() == 1) {
    return input_error(
        given.mark,
        fmt::format("plan.replicas above 1 do not go with the schedule '{}'", choice.rule->name),
        "plan.data_parallel makes copies of the pipeline");
  }
  return input_error(
      given.mark,
      fmt::format("plan.replicas differs from those of the schedule '{}'", choice.rule->name),
      fmt::format("each stage has {}: leave plan.replicas out", own.front()));
}

/// The replicas of each stage. Errors: a list of the wrong length; replicas that the schedule does
/// not allow.
Result<std::vector<std::uint32_t>> stage_replicas(const Scenario& scenario, std::uint32_t stages) {
  const auto& given = scenario.plan.replicas;
  const ScheduleChoice& choice = scenario.schedule;
  if (given && given->value.size() != stages)
    return input_error(given->mark, wrong_length("plan.replicas", given->value.size(), stages));
  std::vector<std::uint32_t> replicas(stages, 1);
  if (auto own = own_replicas(choice, stages)) {
    if (given) {
      if (auto refused = check_replicas(*given, choice, *own)) return *refused;
    }
    replicas = *std::move(own);
  } else if (given) {
    replicas.assign(given->value.begin(), given->value.end());
  }
  for (std::size_t s = 0; s < stages && !choice.asynchronous(); ++s) {
    const std::uint32_t r = replicas[s];
    if (choice.micro_batches % r == 0) continue;
    return input_error(
        choice.micro_batches_mark,
        fmt::format("schedule.micro_batches is {}, which the {} replicas of stage {} do not "
                    "divide evenly",
                    choice.micro_batches, r, s),
        fmt::format("{} would do", (choice.micro_batches / r + 1) * r));
  }
  return replicas;
}

/// Whether `devices` are those of `numbered` under other numbers.
bool renumbers(const StageDevices& numbered, const StageDevices& devices) {
  std::map<DeviceId, DeviceId> renamed;
  std::map<DeviceId, DeviceId> back;
  for (std::size_t s = 0; s < numbered.size(); ++s) {
    if (numbered[s].size() != devices[s].size()) return false;
    for (std::size_t r = 0; r < numbered[s].size(); ++r) {
      const DeviceId from = numbered[s][r];
      const DeviceId to = devices[s][r];
      if (renamed.emplace(from, to).first->second != to) return false;
      if (back.emplace(to, from).first->second != from) return false;
    }
  }
  return true;
}

/// The devices of each stage of the first copy.
Result<StageDevices> stage_devices(const Scenario& scenario, std::uint32_t stages) {
  const Plan& plan = scenario.plan;
  if (stages % scenario.schedule.chunks != 0) {
    return input_error(
        plan.stages ? plan.stages->mark : plan.partition_mark,
        fmt::format("the number of stages is {}, which the {} of each device do not divide", stages,
                    scenario.schedule.chunks),
        fmt::format("the schedule '{}' gives each device as many (schedule.chunks): without "
                    "plan.stages each device has its own",
                    scenario.schedule.rule->name));
  }
  const auto replicas = stage_replicas(scenario, stages);
  if (!replicas) return replicas.problems();
  std::optional<std::uint32_t> available;
  if (scenario.cluster_given) {
    available = scenario.cluster.device_count() / static_cast<std::uint32_t>(scenario.copies);
    if (*available == 0) {
      return input_error(plan.data_parallel.mark,
                         fmt::format("plan.data_parallel is {}, but the number of devices is {}",
                                     scenario.copies, scenario.cluster.device_count()));
    }
  }
  StageDevices numbered = numbered_devices(scenario, *replicas);
  if (plan.devices) {
    auto devices = given_devices(*plan.devices, *replicas, available, scenario.copies);
    const auto& file = scenario.schedule.file;
    const bool fits = !devices || (file && file->is_sequence() ? renumbers(numbered, *devices)
                                                               : *devices == numbered);
    if (file && !fits) {
      return input_error(plan.devices->mark, "plan.devices differs from the rows of schedule.file",
                         "row i of the file is device i: leave plan.devices out");
    }
    if (devices && scenario.schedule.chunk_rule() && !renumbers(numbered, *devices)) {
      return input_error(
          plan.devices->mark,
          fmt::format("plan.devices differs from how the schedule '{}' places stages",
                      scenario.schedule.rule->name),
          fmt::format("leave plan.devices out, or give the devices of {} other numbers",
                      to_text_of(numbered)));
    }
    return devices;
  }
  std::uint32_t needed = 0;
  for (const auto& of_stage : numbered) {
    for (const DeviceId device : of_stage) needed = std::max(needed, device.value + 1);
  }
  if (available && needed > *available) {
    const Mark& mark = plan.replicas ? plan.replicas->mark
                       : plan.stages ? plan.stages->mark
                                     : scenario.cluster_mark;
    const bool single = !plan.replicas && !scenario.schedule.file && scenario.schedule.chunks == 1;
    const std::string copies =
        scenario.copies > 1 ? fmt::format(" for each of {} copies", scenario.copies) : "";
    if (single) {
      return input_error(
          mark,
          fmt::format("the number of stages is {}, but that of devices is {}{}", stages, *available,
                      copies),
          "fewer stages, more devices, or plan.devices with several stages on one device");
    }
    return input_error(
        mark,
        fmt::format("the plan needs {} devices, but there are {}{}", needed, *available, copies),
        scenario.schedule.file ? "a row of schedule.file is a device: more devices"
        : scenario.schedule.chunks > 1
            ? fmt::format("plan.stages: {}, {} on each (schedule.chunks), or more devices",
                          *available * scenario.schedule.chunks, scenario.schedule.chunks)
            : "fewer replicas, or more devices");
  }
  if (!plan.device_order.empty()) {
    for (auto& of_stage : numbered) {
      for (DeviceId& device : of_stage) device.value = plan.device_order[device.value];
    }
  }
  return numbered;
}

/// Layers in an order in which each stage is a contiguous run, and the length of each run.
struct Cut {
  std::vector<LayerId> order;
  std::vector<std::uint32_t> counts;
};

/// The cut into stages by the names in the plan. Errors: a name that is no layer or stands twice, a
/// layer without a stage, an edge that leads to an earlier stage.
Result<Cut> cut_by_names(const Scenario& scenario, const StageNames& names,
                         const std::vector<LayerId>& order) {
  const LayerGraph& graph = scenario.model->graph;
  const Mark& mark = scenario.plan.partition_mark;
  std::map<std::string_view, std::uint32_t> index;
  std::vector<std::string> known;
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    index.emplace(graph.layer({i}).name, i);
    known.push_back(graph.layer({i}).name);
  }
  constexpr std::uint32_t nowhere = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> stage_of(graph.size(), nowhere);
  for (std::uint32_t s = 0; s < names.size(); ++s) {
    for (const std::string& name : names[s]) {
      const auto found = index.find(name);
      if (found == index.end()) {
        return input_error(
            mark, fmt::format("plan.partition names '{}', which is no layer", clipped(name)),
            did_you_mean(name, known));
      }
      if (stage_of[found->second] != nowhere) {
        return input_error(mark, fmt::format("plan.partition puts layer '{}' into stage {} and {}",
                                             clipped(name), stage_of[found->second], s));
      }
      stage_of[found->second] = s;
    }
  }
  const auto missing = std::find(stage_of.begin(), stage_of.end(), nowhere);
  if (missing != stage_of.end()) {
    const auto layer = static_cast<std::uint32_t>(missing - stage_of.begin());
    return input_error(mark, fmt::format("plan.partition names no stage for layer '{}'",
                                         clipped(graph.layer({layer}).name)));
  }
  for (const LayerEdge& edge : graph.edges()) {
    if (stage_of[edge.from.value] <= stage_of[edge.to.value]) continue;
    return input_error(
        mark,
        fmt::format("plan.partition puts layer '{}' into stage {}, behind its consumer '{}' in "
                    "stage {}",
                    clipped(graph.layer(edge.from).name), stage_of[edge.from.value],
                    clipped(graph.layer(edge.to).name), stage_of[edge.to.value]));
  }
  Cut cut{order, std::vector<std::uint32_t>(names.size(), 0)};
  std::stable_sort(cut.order.begin(), cut.order.end(),
                   [&](LayerId a, LayerId b) { return stage_of[a.value] < stage_of[b.value]; });
  for (const std::uint32_t s : stage_of) ++cut.counts[s];
  return cut;
}

/// The layers of each stage that take the least time on the slowest device. `kinds`: that of
/// each stage's devices.
std::vector<std::uint32_t> balanced(const Scenario& scenario, const DeviceCosts& costs,
                                    const std::vector<LayerId>& order,
                                    const std::vector<std::uint32_t>& kinds) {
  std::vector<std::vector<Duration>> times(costs.size());
  for (std::size_t run = 0; run < costs.size(); ++run) {
    for (const LayerId layer : order) {
      const LayerCosts& cost = costs[run][layer.value];
      times[run].push_back(cost.forward.mean + cost.backward.mean);
      // Assumes that all layers are recomputed: the recomputed ones depend on the stages.
      if (scenario.schedule.recompute.kind != Recompute::none)
        times[run].back() += cost.again().mean;
    }
  }
  return balanced_counts(times, kinds);
}

/// The cut into stages. Errors: a partition that does not fit the model or the number of stages.
Result<Cut> cut_layers(const Scenario& scenario, const DeviceCosts& costs,
                       const std::vector<std::uint32_t>& kinds, std::uint32_t stages) {
  const std::vector<LayerId> order = scenario.model->graph.topological_order();
  const auto layers = static_cast<std::uint32_t>(order.size());
  const Plan& plan = scenario.plan;
  if (const auto written = plan.written_stages(); written && *written != stages) {
    return input_error(plan.partition_mark, wrong_length("plan.partition", *written, stages));
  }
  if (const auto* names = std::get_if<StageNames>(&plan.partition))
    return cut_by_names(scenario, *names, order);
  if (const auto* given = std::get_if<std::vector<std::int64_t>>(&plan.partition)) {
    const std::int64_t sum = std::accumulate(given->begin(), given->end(), std::int64_t{0});
    if (sum != layers) {
      return input_error(
          plan.partition_mark,
          fmt::format("plan.partition adds up to {} layers, but the model has {}", sum, layers));
    }
    return Cut{order, std::vector<std::uint32_t>(given->begin(), given->end())};
  }
  if (const auto* layout = std::get_if<LayoutString>(&plan.partition)) {
    auto counts =
        layout_counts(layer_units(scenario.model->graph, order), *layout, plan.partition_mark);
    if (!counts) return counts.problems();
    return Cut{order, *std::move(counts)};
  }
  if (scenario.schedule.file && plan.stages && plan.stages->value != stages) {
    return input_error(plan.stages->mark,
                       fmt::format("plan.stages is {}, but schedule.file has {} stages",
                                   plan.stages->value, stages),
                       "leave stages out");
  }
  if (stages > layers) {
    return input_error(
        plan.stages ? plan.stages->mark : scenario.plan_mark,
        fmt::format("the number of stages is {}, but that of layers is {}", stages, layers),
        plan.stages ? ""
        : scenario.schedule.chunks == 1
            ? "without plan.stages there is a stage for each device"
            : fmt::format("each device has {} stages (schedule.chunks){}", scenario.schedule.chunks,
                          layers >= scenario.schedule.chunks
                              ? fmt::format("; plan.stages: {} uses as many devices",
                                            layers / scenario.schedule.chunks)
                              : ""));
  }
  PLUMBLINE_CHECK(!plan.is_planned(), "the plan is not settled");
  const auto rule = std::get<PartitionRule>(plan.partition);
  if (rule == PartitionRule::even) return Cut{order, even_counts(layers, stages)};
  if (rule == PartitionRule::blocks) {
    auto counts =
        even_block_counts(layer_units(scenario.model->graph, order), stages, plan.partition_mark);
    if (!counts) return counts.problems();
    return Cut{order, *std::move(counts)};
  }
  if (std::int64_t{stages} * layers > kMaxBalanced) {
    return input_error(
        plan.partition_mark,
        fmt::format("{} layers in {} stages are too many for partition: balanced", layers, stages),
        "use even, or a list of layers per stage");
  }
  return Cut{order, balanced(scenario, costs, order, kinds)};
}

}  // namespace

Result<std::int64_t> copies_that_fill(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  const ScheduleChoice& choice = scenario.schedule;
  const Mark& mark = plan.data_parallel.mark;
  std::int64_t each = 0;  // devices of one copy
  if (plan.devices) {
    for (const auto& of_stage : plan.devices->value) {
      for (const std::int64_t device : of_stage) each = std::max(each, device + 1);
    }
  } else if (choice.file) {
    each = static_cast<std::int64_t>(choice.file->lists.size());
  } else if (plan.replicas && !choice.chunk_rule()) {
    each =
        std::accumulate(plan.replicas->value.begin(), plan.replicas->value.end(), std::int64_t{0});
  } else if (plan.stages || plan.written_stages() || plan.replicas) {
    each = std::max(stage_count(scenario) / choice.chunks, 1U);
  } else {
    return input_error(mark, "plan.data_parallel is 'fill', but the number of stages is not given",
                       "plan.stages, or a partition that is written out");
  }
  const std::int64_t devices = scenario.cluster.device_count();
  if (each > devices || devices % each != 0) {
    return input_error(mark,
                       fmt::format("plan.data_parallel is 'fill', but copies of {} devices do not "
                                   "fill {}",
                                   each, devices),
                       each > devices ? "fewer stages, or more devices"
                                      : fmt::format("{} would be left over", devices % each));
  }
  return devices / each;
}

ChunkShape chunk_shape(const Scenario& scenario, std::size_t stages) {
  const std::uint32_t chunks = scenario.schedule.chunks;
  return {static_cast<std::uint32_t>(stages) / chunks, chunks, scenario.schedule.micro_batches,
          scenario.schedule.group};
}

Result<std::uint32_t> kind_of_stage(const Scenario& scenario, std::size_t stage,
                                    const std::vector<DeviceId>& devices) {
  const Cluster& cluster = scenario.cluster;
  if (cluster.runs.empty()) return 0;
  const auto copies = static_cast<std::uint32_t>(scenario.copies);
  const DeviceId first{devices.front().value * copies};
  const std::uint32_t kind = cluster.kind_of(first);
  for (const DeviceId device : devices) {
    for (std::uint32_t copy = 0; copy < copies; ++copy) {
      const DeviceId other{device.value * copies + copy};
      if (cluster.kind_of(other) == kind) continue;
      return input_error(scenario.cluster_mark,
                         fmt::format("stage {} stands on device {} ({}) and on device {} ({})",
                                     stage, first.value, cluster.runs[kind].name, other.value,
                                     cluster.runs[cluster.run_of(other)].name),
                         "the replicas and copies of a stage are on devices that are alike");
    }
  }
  return kind;
}

Result<std::uint32_t> places_in_pipeline(const Scenario& scenario) {
  const auto replicas = stage_replicas(scenario, stage_count(scenario));
  if (!replicas) return replicas.problems();
  std::uint32_t places = 0;
  for (const auto& of_stage : numbered_devices(scenario, *replicas)) {
    for (const DeviceId device : of_stage) places = std::max(places, device.value + 1);
  }
  return places;
}

Result<Partition> place(const Scenario& scenario, const DeviceCosts& costs) {
  const std::uint32_t stages = stage_count(scenario);
  Diagnostics problems;
  std::vector<std::uint32_t> kinds(std::min<std::size_t>(stages, kMaxDevices), 0);
  auto devices =
      stages > kMaxDevices ? Result<StageDevices>(StageDevices()) : stage_devices(scenario, stages);
  for (std::size_t s = 0; devices && s < devices->size(); ++s) {
    auto kind = kind_of_stage(scenario, s, (*devices)[s]);
    if (!kind) return kind.problems();
    kinds[s] = *kind;
  }
  auto cut = cut_layers(scenario, costs, kinds, stages);
  if (!cut && stages > kMaxDevices) return cut.problems();
  const bool is_cut = keep(cut, problems);
  if (!keep(devices, problems) || !is_cut) return problems;
  return make_partition(cut->order, cut->counts, *std::move(devices));
}

}  // namespace plumbline
