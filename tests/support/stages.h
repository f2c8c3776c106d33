// Pipelines of stages of one layer each, and their schedules.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "schedules/generators/generators.h"
#include "schedules/stages/partition.h"
#include "schedules/stages/stage_costs.h"
#include "tests/support/text_source.h"

namespace plumbline::test {

/// A pipeline of one layer per stage on as many devices, and its schedule.
struct TestStages {
  std::vector<Duration> forward;
  std::vector<Duration> backward;
  Bytes output{};  ///< The output of every layer.
  Bytes activation{};
  Bytes parameters{};
  Duration update{};
  std::uint32_t micro_batches = 1;
  std::string schedule = "gpipe";
  std::vector<std::uint32_t> windows{};   ///< Empty = by the rule.
  std::vector<DeviceId> devices{};        ///< Empty = 0, 1, ...
  std::vector<std::uint32_t> replicas{};  ///< Per stage, on devices 0, 1, ...; empty = 1 each.
};

inline TestStages equal_stages(std::uint32_t stages, Duration forward, Duration backward) {
  TestStages pipeline;
  pipeline.forward.assign(stages, forward);
  pipeline.backward.assign(stages, backward);
  return pipeline;
}

inline std::vector<LayerCosts> layer_costs(const TestStages& p) {
  std::vector<LayerCosts> costs(p.forward.size());
  for (std::size_t i = 0; i < costs.size(); ++i) {
    costs[i].forward.mean = p.forward[i];
    costs[i].backward.mean = p.backward[i];
    costs[i].update.mean = p.update;
    costs[i].output = p.output;
    costs[i].activation = p.activation;
  }
  return costs;
}

inline LayerGraph layer_chain(const TestStages& p) {
  std::vector<Layer> layers;
  for (std::size_t i = 0; i < p.forward.size(); ++i)
    layers.push_back({"l" + std::to_string(i), "", p.parameters});
  return LayerGraph::chain(std::move(layers));
}

inline Partition one_layer_a_stage(const TestStages& p) {
  std::vector<std::vector<DeviceId>> devices(p.forward.size());
  std::uint32_t next = 0;
  for (std::uint32_t s = 0; s < p.forward.size(); ++s) {
    if (!p.devices.empty()) {
      devices[s].push_back(p.devices[s]);
      continue;
    }
    for (std::uint32_t r = 0; r < (p.replicas.empty() ? 1 : p.replicas[s]); ++r)
      devices[s].push_back({next++});
  }
  return make_partition(layer_chain(p).topological_order(),
                        std::vector<std::uint32_t>(p.forward.size(), 1), devices);
}

inline StageCosts costs_of(const TestStages& p) {
  return stage_costs(layer_chain(p), layer_costs(p), one_layer_a_stage(p));
}

inline Schedule schedule_of(const TestStages& p) {
  const PipelineShape shape = pipeline_shape(one_layer_a_stage(p), p.micro_batches);
  const ScheduleRule& rule = *find_schedule_rule(p.schedule);
  const auto by_rule = windows(rule, shape, std::nullopt);
  auto schedule = generate(rule, shape, p.windows.empty() ? by_rule : p.windows, {});
  REQUIRE_MESSAGE(schedule, (schedule ? "" : to_text(schedule.problems())));
  return *std::move(schedule);
}

inline std::vector<std::uint32_t> replicas_of(const TestStages& p) {
  return p.replicas.empty() ? std::vector<std::uint32_t>(p.forward.size(), 1) : p.replicas;
}

}  // namespace plumbline::test
