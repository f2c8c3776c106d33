// One row per stage.
//
// SPDX-License-Identifier: MIT
#include "sim/report/stage_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/quantity.h"
#include "base/table.h"
#include "sim/engine/stage_memory.h"

namespace plumbline {
namespace {

/// The devices of a stage in all copies and replicas.
std::vector<DeviceId> devices_of(const Stage& stage, std::uint32_t copies) {
  std::vector<DeviceId> devices;
  for (const DeviceId device : stage.devices) {
    for (std::uint32_t copy = 0; copy < copies; ++copy)
      devices.push_back({device.value * copies + copy});
  }
  return devices;
}

/// The time of a micro-batch on each device of a stage, forward and backward, in seconds.
double work_of(const StageCost& cost, bool again, std::size_t replicas) {
  return seconds(cost.forward + cost.backward + (again ? cost.again : Duration{})) /
         static_cast<double>(replicas);
}

/// A line on the ratio of the slowest stage to the mean of all; "" for one stage.
std::string balance_text(const std::vector<double>& work) {
  const double sum = std::accumulate(work.begin(), work.end(), 0.0);
  if (work.size() < 2 || sum <= 0) return "";
  const auto [min, max] = std::minmax_element(work.begin(), work.end());
  if (*min == *max) return "all stages take the same\n";
  return fmt::format("slowest: stage {} takes {:.3f} times the mean of all stages\n",
                     max - work.begin(), *max * static_cast<double>(work.size()) / sum);
}

}  // namespace

Document stage_table(const TrainingSetup& setup) {
  const Recompute recompute = setup.rules.recompute;
  const bool again = recompute != Recompute::none;
  const std::vector<StageCost>& costs = setup.costs.stages;
  const auto memory = stage_memory(setup.costs, setup.schedule.shape.positions, recompute);
  Table table;
  std::vector<std::string> header = {"stage",   "layers",  "from",    "to",
                                     "devices", "forward", "backward"};
  if (again) header.emplace_back("recompute");
  for (const char* const name : {"update", "parameters", "kept", "sends"})
    header.emplace_back(name);
  table.row(header);
  std::vector<double> work;
  for (std::size_t s = 0; s < costs.size(); ++s) {
    const Stage& stage = setup.partition.stages[s];
    const StageCost& cost = costs[s];
    const LayerGraph& graph = setup.model->graph;
    std::vector<std::string> row = {std::to_string(s),
                                    std::to_string(stage.layers.size()),
                                    clipped(graph.layer(stage.layers.front()).name),
                                    clipped(graph.layer(stage.layers.back()).name),
                                    ranges(devices_of(stage, setup.copies())),
                                    to_text(cost.forward),
                                    to_text(cost.backward)};
    if (again) row.push_back(to_text(cost.again));
    row.push_back(to_text(cost.update));
    row.push_back(to_text(cost.parameters));
    row.push_back(to_text(memory[s].kept));
    row.push_back(to_text(setup.costs.cut_bytes(static_cast<std::uint32_t>(s))));
    table.row(std::move(row));
    work.push_back(work_of(cost, again, stage.devices.size()));
  }
  table.may_lack({"sends", "update"});
  Document text;
  text.table(std::move(table));
  text.sentence(balance_text(work));
  return text;
}

}  // namespace plumbline
