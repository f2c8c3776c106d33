// The ops, the transfers and the memory of a run, in columns.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "library/predict/inside.h"
#include "sim/setup/training_setup.h"

namespace plumbline::v1 {
namespace {

/// The letter of an op; 0 for what is none.
char letter_of(ActivityKind kind) {
  if (kind == ActivityKind::update) return 'U';
  return is_op(kind) ? "FBIW"[static_cast<int>(kind)] : '\0';
}

std::int64_t nanoseconds(SimTime time) { return time.time_since_epoch().count(); }

/// Of each slot, the number of its ops, and behind them that of all.
std::vector<std::size_t> begins_of_slots(const OpGraph& graph) {
  std::vector<std::size_t> begins(graph.slots() + 1, 0);
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    if (letter_of(graph.activities[node].kind) != 0) ++begins[graph.nodes[node].resource + 1];
  }
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  return begins;
}

}  // namespace

/// One pass, as the nodes of each slot stand in their order.
OpColumns::OpColumns(const plumbline::Outcome& outcome) {
  const OpGraph& graph = outcome.graph;
  const std::vector<Span>& spans = outcome.trace.spans;
  const bool has_parts =
      std::any_of(graph.activities.begin(), graph.activities.end(),
                  [](const Activity& activity) { return is_part(activity.kind); });
  std::vector<std::uint32_t> firsts, lasts;  // empty: every op is one node
  if (has_parts || !graph.pairs.empty()) {
    firsts = first_parts(graph);
    for (const auto& [first, second] : graph.pairs) firsts[second] = first;
    lasts = ends_of_pairs(graph);
  }
  std::vector<std::size_t> places = begins_of_slots(graph);
  const std::size_t count = places.back();
  block = HugeBlock(count * (2 * sizeof(std::int64_t) + 3 * sizeof(std::uint32_t) + 1));
  const auto begin_ns = block.take<std::int64_t>(count);
  const auto end_ns = block.take<std::int64_t>(count);
  const auto device = block.take<std::uint32_t>(count);
  const auto stage = block.take<std::uint32_t>(count);
  const auto micro_batch = block.take<std::uint32_t>(count);
  const auto kind = block.take<char>(count);
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    const Activity& activity = graph.activities[node];
    const char letter = letter_of(activity.kind);
    if (letter == 0) continue;
    const std::uint32_t slot = graph.nodes[node].resource;
    const std::size_t at = places[slot]++;
    begin_ns[at] = nanoseconds(spans[firsts.empty() ? node : firsts[node]].begin);
    end_ns[at] = nanoseconds(spans[lasts.empty() ? node : lasts[node]].end);
    device[at] = graph.devices[slot].value;
    stage[at] = activity.stage.value;
    micro_batch[at] = activity.micro_batch.value;
    kind[at] = letter;
  }
  ops = {device, stage, micro_batch, kind, begin_ns, end_ns};
}

TransferColumns::TransferColumns(const plumbline::Outcome& outcome) {
  const OpGraph& graph = outcome.graph;
  const std::vector<Span>& spans = outcome.trace.spans;
  std::vector<std::uint32_t> nodes;
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    if (is_transfer(graph.activities[node].kind)) nodes.push_back(node);
  }
  std::stable_sort(nodes.begin(), nodes.end(), [&](std::uint32_t a, std::uint32_t b) {
    return spans[a].begin < spans[b].begin;
  });
  const std::size_t count = nodes.size();
  block = HugeBlock(count * (3 * sizeof(std::int64_t) + 4 * sizeof(std::uint32_t) + 1));
  const auto begin_ns = block.take<std::int64_t>(count);
  const auto end_ns = block.take<std::int64_t>(count);
  const auto bytes = block.take<std::int64_t>(count);
  const auto from = block.take<std::uint32_t>(count);
  const auto to = block.take<std::uint32_t>(count);
  const auto stage = block.take<std::uint32_t>(count);
  const auto micro_batch = block.take<std::uint32_t>(count);
  const auto kind = block.take<char>(count);
  for (std::size_t at = 0; at < count; ++at) {
    const std::uint32_t node = nodes[at];
    const Activity& activity = graph.activities[node];
    begin_ns[at] = nanoseconds(spans[node].begin);
    end_ns[at] = nanoseconds(spans[node].end);
    bytes[at] = graph.cost(node).bytes.count;
    from[at] = graph.devices[graph.sender(node)].value;
    to[at] = graph.devices[graph.receiver(node)].value;
    stage[at] = activity.stage.value;
    micro_batch[at] = activity.micro_batch.value;
    kind[at] = activity.kind == ActivityKind::activation_transfer ? 'F' : 'B';
  }
  transfers = {from, to, stage, micro_batch, kind, bytes, begin_ns, end_ns};
}

const Ops& Run::Inside::ops() const {
  std::call_once(ops_made_, [&] { ops_.emplace(outcome); });
  return ops_->ops;
}

const Transfers& Run::Inside::transfers() const {
  std::call_once(transfers_made_, [&] { transfers_.emplace(outcome); });
  return transfers_->transfers;
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
