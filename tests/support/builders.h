// Small builders: pipelines and graphs from a few numbers.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "models/hardware/cluster.h"
#include "sim/engine/metrics.h"
#include "sim/engine/simulate.h"
#include "sim/graph/lower.h"
#include "tests/support/stages.h"
#include "tests/support/text_source.h"

namespace plumbline::test {

/// Stages on linked devices, and the options of lowering.
struct TestPipeline : TestStages {
  TestPipeline() = default;
  TestPipeline(const TestStages& stages) : TestStages(stages) {}

  Link link{};
  RunRules options{};
  std::optional<Cluster> cluster{};  ///< Absent = flat with `link`.
};

inline TestPipeline equal_pipeline(std::uint32_t stages, Duration forward, Duration backward) {
  return equal_stages(stages, forward, backward);
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

}  // namespace plumbline::test
