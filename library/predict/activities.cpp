// The ops, the transfers and the memory of a run, in columns.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "library/predict/inside.h"
#include "sim/engine/idle.h"
#include "sim/setup/training_setup.h"

namespace plumbline::v1 {
namespace {

/// The letter of an op; 0 for what is none.
char letter_of(ActivityKind kind) {
  switch (kind) {
    case ActivityKind::forward:
      return 'F';
    case ActivityKind::backward:
      return 'B';
    case ActivityKind::backward_input:
      return 'I';
    case ActivityKind::backward_weight:
      return 'W';
    case ActivityKind::update:
      return 'U';
    default:
      return 0;
  }
}

std::int64_t nanoseconds(SimTime time) { return time.time_since_epoch().count(); }

Ops ops_of(const plumbline::Outcome& outcome) {
  const OpGraph& graph = outcome.graph;
  std::vector<std::uint32_t> begins = first_parts(graph);
  for (const auto& [first, second] : graph.pairs) begins[second] = first;
  const std::vector<std::uint32_t> ends = ends_of_pairs(graph);
  const auto most = static_cast<std::size_t>(
      std::count_if(graph.activities.begin(), graph.activities.end(),
                    [](const Activity& activity) { return letter_of(activity.kind) != 0; }));
  Ops ops;
  ops.device.reserve(most);
  ops.stage.reserve(most);
  ops.micro_batch.reserve(most);
  ops.kind.reserve(most);
  ops.begin_ns.reserve(most);
  ops.end_ns.reserve(most);
  const auto nodes = nodes_by_slot(graph);
  for (std::size_t slot = 0; slot < nodes.size(); ++slot) {
    for (const std::uint32_t node : nodes[slot]) {
      const Activity& activity = graph.activities[node];
      const char kind = letter_of(activity.kind);
      if (kind == 0) continue;
      ops.device.push_back(graph.devices[slot].value);
      ops.stage.push_back(activity.stage.value);
      ops.micro_batch.push_back(activity.micro_batch.value);
      ops.kind.push_back(kind);
      ops.begin_ns.push_back(nanoseconds(outcome.trace.spans[begins[node]].begin));
      ops.end_ns.push_back(nanoseconds(outcome.trace.spans[ends[node]].end));
    }
  }
  return ops;
}

Transfers transfers_of(const plumbline::Outcome& outcome) {
  const OpGraph& graph = outcome.graph;
  const std::vector<Span>& spans = outcome.trace.spans;
  std::vector<std::uint32_t> nodes;
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    if (is_transfer(graph.activities[node].kind)) nodes.push_back(node);
  }
  std::stable_sort(nodes.begin(), nodes.end(), [&](std::uint32_t a, std::uint32_t b) {
    return spans[a].begin < spans[b].begin;
  });
  Transfers transfers;
  for (const std::uint32_t node : nodes) {
    const Activity& activity = graph.activities[node];
    transfers.from.push_back(graph.devices[graph.sender(node)].value);
    transfers.to.push_back(graph.devices[graph.receiver(node)].value);
    transfers.stage.push_back(activity.stage.value);
    transfers.micro_batch.push_back(activity.micro_batch.value);
    transfers.kind.push_back(activity.kind == ActivityKind::activation_transfer ? 'F' : 'B');
    transfers.bytes.push_back(graph.cost(node).bytes.count);
    transfers.begin_ns.push_back(nanoseconds(spans[node].begin));
    transfers.end_ns.push_back(nanoseconds(spans[node].end));
  }
  return transfers;
}

}  // namespace

const Ops& Run::Inside::ops() const {
  std::call_once(ops_made_, [&] { ops_ = ops_of(outcome); });
  return ops_;
}

const Transfers& Run::Inside::transfers() const {
  std::call_once(transfers_made_, [&] { transfers_ = transfers_of(outcome); });
  return transfers_;
}

const std::vector<std::vector<MemoryStep>>& Run::Inside::memory_steps() const {
  std::call_once(steps_made_, [&] {
    const TrainingSetup& setup = outcome.setup;
    steps_ = plumbline::memory_steps(outcome.graph, outcome.trace, setup.costs,
                                     setup.schedule.shape.positions, memory_rules(setup));
  });
  return steps_;
}

Result<MemoryCurve> Run::memory(std::uint32_t device) const {
  const plumbline::Outcome& outcome = inside_->outcome;
  const auto& devices = outcome.graph.devices;
  const auto found = std::find(devices.begin(), devices.end(), DeviceId{device});
  if (found == devices.end()) {
    Diagnostic wrong;
    wrong.message = fmt::format("device {} holds no stage of this run", device);
    wrong.help = fmt::format("its {} devices are {} to {}", devices.size(), devices.front().value,
                             devices.back().value);
    return error_of({wrong});
  }
  const auto slot = static_cast<std::size_t>(found - devices.begin());
  const MemoryParts& peak = outcome.memory[slot].peak;
  const Bytes held = peak.sum() - peak.activations - peak.buffers;
  MemoryCurve curve{{0}, {held.count}};
  for (const MemoryStep& step : inside_->memory_steps()[slot]) {
    curve.time_ns.push_back(nanoseconds(step.at));
    curve.bytes.push_back((held + step.activations + step.buffers).count);
  }
  return curve;
}

}  // namespace plumbline::v1
