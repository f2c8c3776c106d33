// The ledger is a list of changes; the peak is computed at the end.
//
// SPDX-License-Identifier: MIT
#include "calibrate/runtime/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/bug.h"

namespace plumbline {
namespace {

// The passes of a micro-batch through a stage, as bits: passes that have ended, and passes that
// have begun. Each part of a pass begins it.
constexpr std::uint8_t kForward = 1;
constexpr std::uint8_t kBackwardInput = 2;
constexpr std::uint8_t kBegunForward = 4;
constexpr std::uint8_t kBegunBackward = 8;

}  // namespace

Ledger::Ledger(const RunPlan& plan, std::uint32_t slot)
    : plan_(plan),
      slot_(slot),
      memory_(plan.setup.costs, plan.setup.schedule.shape.positions, plan.setup.rules.recompute) {
  for (std::uint32_t s = 0; s < plan.graph.stage_slots.size(); ++s) {
    const auto& slots = plan.graph.stage_slots[s];
    if (std::find(slots.begin(), slots.end(), slot) == slots.end()) continue;
    Stage& stage = stages_.emplace_back();
    stage.stage = s;
  }
  for (const Op& op : plan.setup.schedule.issue_order) {
    if (op.kind != OpKind::backward_input) continue;
    for (Stage& stage : stages_) stage.splits = stage.splits || stage.stage == op.stage.value;
  }
  for (const auto& [first, second] : plan.graph.pairs) {
    if (plan.graph.nodes[first].resource != slot) continue;
    second_of_[first] = second;
    first_of_[second] = first;
  }
  restart();
}

const StageMemory& Ledger::memory_of(const Stage& stage, std::uint32_t node) const {
  const std::uint32_t copy = slot_ % plan_.graph.written_copies;
  const std::uint32_t kind = memory_.kind(plan_.graph.activities[node].micro_batch.value, copy);
  return memory_.of(kind)[stage.stage];
}

void Ledger::restart() {
  own_.clear();
  posted_.clear();
  for (Stage& stage : stages_) {
    stage.done.assign(plan_.graph.micro_batches, 0);
    stage.newest = stage.oldest = 0;
    stage.max_kept = 1;
    stage.uses_left.clear();
    if (!plan_.graph.asynchronous()) continue;
    const auto& uses = plan_.setup.weights[stage.stage].uses;
    for (std::uint32_t m = 0; m < uses.size(); ++m) {
      if (plan_.setup.schedule.shape.slot({stage.stage}, {m}) != slot_) continue;
      for (const std::uint32_t version : {uses[m].forward, uses[m].backward}) {
        if (version >= stage.uses_left.size()) stage.uses_left.resize(version + 1, 0);
        ++stage.uses_left[version];
      }
    }
  }
}

std::string Ledger::op_name(std::uint32_t node) const {
  return to_text(plan_.graph.activities[node]);
}

std::string Ledger::fed_op(std::uint32_t node) const {
  Activity activity = plan_.graph.activities[node];
  activity.kind = op_of(activity.kind);
  if (activity.kind == ActivityKind::activation_transfer) activity.kind = ActivityKind::forward;
  if (activity.kind == ActivityKind::gradient_transfer) {
    const bool splits = std::any_of(stages_.begin(), stages_.end(), [&](const Stage& one) {
      return one.stage == activity.stage.value && one.splits;
    });
    activity.kind = splits ? ActivityKind::backward_input : ActivityKind::backward;
  }
  return to_text(activity);
}

Ledger::Stage& Ledger::stage_of(std::uint32_t node) {
  const std::uint32_t stage = plan_.graph.activities[node].stage.value;
  const auto found = std::find_if(stages_.begin(), stages_.end(),
                                  [&](const Stage& one) { return one.stage == stage; });
  PLUMBLINE_CHECK(found != stages_.end(), op_name(node), slot_);
  return *found;
}

void Ledger::require(const Stage& stage, std::uint32_t node, std::uint8_t pass) const {
  Activity missing = plan_.graph.activities[node];
  if ((stage.done[missing.micro_batch.value] & pass) != 0) return;
  missing.kind = pass == kForward ? ActivityKind::forward : ActivityKind::backward_input;
  throw std::runtime_error(
      fmt::format("{} runs before {} has ended on its device", op_name(node), to_text(missing)));
}

std::uint32_t Ledger::version_of(std::uint32_t node) {
  const Activity& activity = plan_.graph.activities[node];
  Stage& stage = stage_of(node);
  if (activity.kind == ActivityKind::update) return stage.newest + 1;
  if (!plan_.graph.asynchronous()) return stage.newest;
  const VersionUse& use = plan_.setup.weights[stage.stage].uses[activity.micro_batch.value];
  const bool is_forward = activity.kind == ActivityKind::forward;
  const std::uint32_t version = is_forward ? use.forward : use.backward;
  // A split backward uses its weights in I.
  if (activity.kind != ActivityKind::backward_weight) use_version(stage, node, version);
  return version;
}

std::uint32_t Ledger::oldest_needed(std::uint32_t node) {
  const Stage& stage = stage_of(node);
  const bool updates = plan_.graph.activities[node].kind == ActivityKind::update;
  const std::uint32_t newest = stage.newest + (updates ? 1 : 0);
  for (std::uint32_t version = stage.oldest; version < newest; ++version) {
    if (version < stage.uses_left.size() && stage.uses_left[version] > 0) return version;
  }
  return newest;
}

void Ledger::use_version(Stage& stage, std::uint32_t node, std::uint32_t version) {
  if (version > stage.newest) {
    throw std::runtime_error(fmt::format("{} needs version {} of its weights, and the newest is {}",
                                         op_name(node), version, stage.newest));
  }
  if (version < stage.oldest) {
    throw std::runtime_error(
        fmt::format("{} needs version {} of its weights, and the oldest that is kept is {}",
                    op_name(node), version, stage.oldest));
  }
  --stage.uses_left[version];
}

void Ledger::drop_versions(Stage& stage) {
  while (stage.oldest < stage.newest &&
         (stage.oldest >= stage.uses_left.size() || stage.uses_left[stage.oldest] == 0)) {
    ++stage.oldest;
  }
  stage.max_kept = std::max(stage.max_kept, stage.newest - stage.oldest + 1);
}

void Ledger::begin(std::uint32_t node, RealTime at) {
  if (first_of_.count(node) > 0) return;
  begin_one(node, at);
  if (const auto second = second_of_.find(node); second != second_of_.end())
    begin_one(second->second, at);
}

void Ledger::end(std::uint32_t node, RealTime at) {
  if (second_of_.count(node) > 0) return;
  if (const auto first = first_of_.find(node); first != first_of_.end()) end_one(first->second, at);
  end_one(node, at);
}

void Ledger::begin_one(std::uint32_t node, RealTime at) {
  const Activity& activity = plan_.graph.activities[node];
  const ActivityKind kind = activity.kind;
  Stage& stage = stage_of(node);
  const StageMemory& memory = memory_of(stage, node);
  const auto begins = [&](std::uint8_t pass) {
    std::uint8_t& done = stage.done[activity.micro_batch.value];
    const bool first = (done & pass) == 0;
    done |= pass;
    return first;
  };
  switch (kind) {
    case ActivityKind::forward_part:
    case ActivityKind::forward:
      if (begins(kBegunForward))
        own_.push_back({at, node, memory.kept, memory.sent, memory.first_of_position ? 1 : 0});
      break;
    case ActivityKind::backward_part:
    case ActivityKind::backward:
      require(stage, node, kForward);
      if (begins(kBegunBackward)) own_.push_back({at, node, memory.again, {}, 0});
      break;
    case ActivityKind::backward_input:
      require(stage, node, kForward);
      own_.push_back({at, node, memory.recomputed_by_input, {}, 0});
      break;
    case ActivityKind::weight_part:
    case ActivityKind::backward_weight:
      require(stage, node, kBackwardInput);
      break;
    default:
      break;
  }
}

void Ledger::end_one(std::uint32_t node, RealTime at) {
  const Activity& activity = plan_.graph.activities[node];
  Stage& stage = stage_of(node);
  const StageMemory& memory = memory_of(stage, node);
  std::uint8_t& done = stage.done[activity.micro_batch.value];
  switch (activity.kind) {
    case ActivityKind::forward:
      done |= kForward;
      break;
    case ActivityKind::backward_input:
      done |= kBackwardInput;
      break;
    case ActivityKind::backward:
    case ActivityKind::backward_weight:
      own_.push_back({at, node,
                      Bytes{} - (activity.kind == ActivityKind::backward ? memory.done
                                                                         : memory.done_by_weight),
                      Bytes{} - memory.received(), memory.first_of_position ? -1 : 0});
      break;
    case ActivityKind::update:
      ++stage.newest;
      break;
    default:
      break;
  }
  drop_versions(stage);
}

void Ledger::receives(std::uint32_t transfer, RealTime at) {
  posted_.push_back({at, transfer, {}, plan_.graph.cost(transfer).bytes, 0});
}

void Ledger::has_sent(std::uint32_t transfer, RealTime at) {
  const Activity& activity = plan_.graph.activities[transfer];
  if (activity.kind != ActivityKind::activation_transfer) return;
  for (const Stage& stage : stages_) {
    if (stage.stage + 1 != activity.stage.value) continue;
    const Bytes sent = memory_of(stage, transfer).sent;
    if (sent != Bytes{}) posted_.push_back({at, transfer, {}, Bytes{} - sent, 0});
  }
}

DeviceMemory Ledger::peak() const {
  std::vector<Change> changes = own_;
  changes.insert(changes.end(), posted_.begin(), posted_.end());
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return a.at != b.at ? a.at < b.at : a.releases() && !b.releases();
  });
  DeviceMemory memory;
  memory.weight_versions = 1;
  std::vector<std::uint32_t> stages;
  for (const Stage& stage : stages_) {
    const StageCost& cost = plan_.setup.costs.stages[stage.stage];
    stages.push_back(stage.stage);
    memory.peak.stash += cost.parameters * (stage.max_kept - 1);
    memory.weight_versions = std::max(memory.weight_versions, stage.max_kept);
  }
  const MemoryRules rules = memory_rules(plan_.setup);
  const MemoryParts whole =
      held_throughout(holders_of(plan_.graph, rules), plan_.setup.costs, rules, stages);
  memory.peak.weights = whole.weights;
  memory.peak.gradients = whole.gradients;
  memory.peak.optimizer = whole.optimizer;
  Bytes activations, buffers;
  std::int32_t max_in_flight = 0;
  std::int32_t at_peak = -1;
  std::uint32_t peak_node = 0;
  std::vector<std::int32_t> positions(plan_.graph.micro_batches, 0);
  std::int32_t in_flight = 0;
  for (const Change& change : changes) {
    activations += change.activations;
    buffers += change.buffers;
    std::int32_t& of_micro_batch = positions[plan_.graph.activities[change.node].micro_batch.value];
    const bool before = of_micro_batch > 0;
    of_micro_batch += change.in_flight;
    in_flight += (of_micro_batch > 0 ? 1 : 0) - (before ? 1 : 0);
    max_in_flight = std::max(max_in_flight, in_flight);
    const Bytes held = activations + buffers;
    const Bytes max = memory.peak.activations + memory.peak.buffers;
    if (at_peak < 0 || held > max || (held == max && in_flight > at_peak)) {
      at_peak = in_flight;
      memory.peak.activations = activations;
      memory.peak.buffers = buffers;
      peak_node = change.node;
    }
  }
  if (at_peak >= 0) {
    memory.peak_op = fed_op(peak_node);
  }
  memory.peak_in_flight = static_cast<std::uint32_t>(max_in_flight);
  return memory;
}

}  // namespace plumbline
