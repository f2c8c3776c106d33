// Tiny builders: pipelines and graphs from a handful of numbers.
// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>

#include <ostream>
#include <string>
#include <vector>

#include "models/cluster.h"
#include "models/quantity.h"
#include "schedules/bubble_formulas.h"
#include "schedules/generators.h"
#include "schedules/lower.h"
#include "sim/metrics.h"
#include "sim/simulate.h"

namespace plumbline {
inline std::ostream& operator<<(std::ostream& out, Duration d) { return out << d.count() << " ns"; }
inline std::ostream& operator<<(std::ostream& out, Bytes b) { return out << b.count << " B"; }
}  // namespace plumbline

namespace plumbline::test {

/// A pipeline of one layer a stage on as many devices, and how it is run.
struct TestPipeline {
  std::vector<Duration> forward;
  std::vector<Duration> backward;
  Bytes output{};  ///< Of every layer.
  Bytes activation{};
  Bytes parameters{};
  Duration update{};
  std::uint32_t micro_batches = 1;
  std::string schedule = "gpipe";
  Link link{};
  std::vector<std::uint32_t> windows{};  ///< Empty = by the rule.
  LoweringOptions options{};
  std::vector<DeviceId> devices{};        ///< Empty = 0, 1, ...
  std::vector<std::uint32_t> replicas{};  ///< Of each stage, on devices 0, 1, ...; empty = 1 each.
  std::optional<Cluster> cluster{};       ///< Absent = flat with `link`.
};

inline TestPipeline equal_stages(std::uint32_t stages, Duration forward, Duration backward) {
  TestPipeline pipeline;
  pipeline.forward.assign(stages, forward);
  pipeline.backward.assign(stages, backward);
  return pipeline;
}

inline std::vector<LayerCosts> layer_costs(const TestPipeline& p) {
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

inline LayerGraph layer_chain(const TestPipeline& p) {
  std::vector<Layer> layers;
  for (std::size_t i = 0; i < p.forward.size(); ++i)
    layers.push_back({"l" + std::to_string(i), "", p.parameters});
  return LayerGraph::chain(std::move(layers));
}

inline Partition one_layer_a_stage(const TestPipeline& p) {
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

inline StageCosts costs_of(const TestPipeline& p) {
  return stage_costs(layer_chain(p), layer_costs(p), one_layer_a_stage(p));
}

inline Schedule schedule_of(const TestPipeline& p) {
  const PipelineShape shape = pipeline_shape(one_layer_a_stage(p), p.micro_batches);
  const ScheduleRule& rule = *find_schedule_rule(p.schedule);
  const auto by_rule = windows(rule, shape, std::nullopt);
  auto schedule = generate(rule, shape, p.windows.empty() ? by_rule : p.windows, {});
  REQUIRE_MESSAGE(schedule, (schedule ? "" : to_text(schedule.problems())));
  return *std::move(schedule);
}

inline std::vector<std::uint32_t> replicas_of(const TestPipeline& p) {
  return p.replicas.empty() ? std::vector<std::uint32_t>(p.forward.size(), 1) : p.replicas;
}

inline OpGraph graph_of(const TestPipeline& p) {
  const std::vector<DeviceId> devices = devices_in_use(one_layer_a_stage(p));
  const std::uint32_t count = (devices.back().value + 1) * p.options.copies;
  auto graph = lower(schedule_of(p), costs_of(p), devices,
                     p.cluster ? *p.cluster : flat_cluster(count, p.link), p.options, {});
  REQUIRE(graph);
  return *std::move(graph);
}

inline Duration makespan(const OpGraph& graph, const Trace& trace) {
  SimTime end;
  for (std::uint32_t i = 0; i < graph.size(); ++i) end = std::max(end, trace.spans[i].end);
  return end.time_since_epoch();
}

inline Duration makespan_of(const TestPipeline& p) {
  const OpGraph graph = graph_of(p);
  return makespan(graph, simulate(graph));
}

/// A text that reads as if it came from a file of this name.
/// The rules that give each position a window.
inline std::vector<ScheduleRule> window_rules() {
  std::vector<ScheduleRule> rules;
  for (const ScheduleRule& rule : schedule_rules()) {
    if (!rule.chunks) rules.push_back(rule);
  }
  return rules;
}

/// Those whose devices have chunks.
inline std::vector<ScheduleRule> chunk_rules() {
  std::vector<ScheduleRule> rules;
  for (const ScheduleRule& rule : schedule_rules()) {
    if (rule.chunks) rules.push_back(rule);
  }
  return rules;
}

inline std::shared_ptr<const Source> text_source(std::string name, std::string text) {
  auto source = std::make_shared<Source>();
  source->name = std::move(name);
  source->text = std::move(text);
  return source;
}

/// A small generator of numbers that are the same on every machine.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ULL + 1) {}

  /// A number in [least, most].
  std::int64_t roll(std::int64_t least, std::int64_t most) {
    state_ ^= state_ << 13U;
    state_ ^= state_ >> 7U;
    state_ ^= state_ << 17U;
    return least + static_cast<std::int64_t>(state_ % static_cast<std::uint64_t>(most - least + 1));
  }

 private:
  std::uint64_t state_;
};

}  // namespace plumbline::test
