// What devices hold throughout a run: weights, gradients and optimizer state, whole or shared.
//
// SPDX-License-Identifier: MIT
#include "sim/engine/held_state.h"

#include <algorithm>
#include <cmath>

#include "schedules/order/waves.h"

namespace plumbline {
namespace {

/// The most that one device holds of bytes that `members` devices share.
Bytes share_of(Bytes all, std::size_t members) {
  const auto shares = static_cast<std::int64_t>(members);
  return {(all.count + shares - 1) / shares};
}

/// The parts of a pass: the numbers of its stage's buckets, in their order. A forward begins with
/// the last bucket.
struct Part {
  std::uint32_t stage = 0;
  std::size_t bucket = 0;
  std::int64_t bytes = 0;

  bool is_same(const Part& other) const { return stage == other.stage && bucket == other.bucket; }
};

/// The most that `count` neighbouring parts hold. `once`: a bucket that comes twice counts once.
std::int64_t most_at_once(const std::vector<Part>& parts, std::size_t count, bool once) {
  std::int64_t most = 0;
  for (std::size_t begin = 0; begin < parts.size(); ++begin) {
    const std::size_t end = std::min(parts.size(), begin + count);
    std::int64_t sum = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const bool again = std::any_of(parts.data() + begin, parts.data() + i,
                                     [&](const Part& part) { return part.is_same(parts[i]); });
      if (!once || !again) sum += parts[i].bytes;
    }
    most = std::max(most, sum);
  }
  return most;
}

std::vector<Part> parts_of(const StagePass& pass, const StageCosts& costs,
                           Bytes Bucket::*const bytes, bool all) {
  std::vector<Part> parts;
  const std::vector<Bucket>& buckets = costs.stages[pass.stage].buckets;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const std::int64_t size = (buckets[b].*bytes).count;
    if (all || size > 0) parts.push_back({pass.stage, b, size});
  }
  if (pass.is_forward) std::reverse(parts.begin(), parts.end());
  return parts;
}

bool is_one_of(const std::vector<std::uint32_t>& stages, const StagePass& pass) {
  return std::find(stages.begin(), stages.end(), pass.stage) != stages.end();
}

/// The most weights that are whole on a device with these stages, beside its shares.
Bytes whole_weights(const StageHolders& holders, const StageCosts& costs, std::size_t count,
                    const std::vector<std::uint32_t>& stages) {
  std::int64_t all = 0;
  bool is_longer = false;  // than a pass: then more than two passes may have weights at a time
  for (const std::uint32_t s : stages) {
    is_longer = is_longer || count > costs.stages[s].buckets.size();
    for (const Bucket& bucket : costs.stages[s].buckets) all += bucket.parameters.count;
  }
  if (is_longer) return {all};
  std::int64_t most = 0;
  const auto look = [&](const StagePass& first, const StagePass* second) {
    std::vector<Part> parts = parts_of(first, costs, &Bucket::parameters, /*all=*/true);
    if (second != nullptr) {
      const std::vector<Part> next = parts_of(*second, costs, &Bucket::parameters, /*all=*/true);
      parts.insert(parts.end(), next.begin(), next.end());
    }
    most = std::max(most, most_at_once(parts, count, /*once=*/true));
  };
  for (const std::uint32_t s : stages) look({s, true}, nullptr);
  for (const auto& [first, second] : holders.neighbours) {
    if (is_one_of(stages, first)) look(first, &second);
  }
  return {most};
}

/// The most gradients that are whole on a device with these stages: a bucket that is made, and the
/// one before it, which is on its way.
Bytes whole_gradients(const StageHolders& holders, const StageCosts& costs,
                      const std::vector<std::uint32_t>& stages) {
  std::int64_t most = 0;
  const auto look = [&](std::vector<Part> parts, const std::vector<Part>& next) {
    parts.insert(parts.end(), next.begin(), next.end());
    most = std::max(most, most_at_once(parts, 2, /*once=*/false));
  };
  const auto of = [&](const StagePass& pass) {
    return parts_of(pass, costs, &Bucket::gradients, /*all=*/false);
  };
  for (const std::uint32_t s : stages) look(of({s, false}), {});
  for (const auto& [first, second] : holders.backwards) {
    if (is_one_of(stages, first)) look(of(first), of(second));
  }
  return {most};
}

}  // namespace

Bytes optimizer_bytes(const MemoryRules& rules, Bytes stepped, std::uint32_t members) {
  const Bytes all{std::llround(rules.optimizer_state * static_cast<double>(stepped.count))};
  return share_of(all, rules.sharing.sharers(members));
}

namespace {

/// Whether the copies of a stage share its weights. Only the part that copies exchange is shared
/// out. The rest belongs to others of the group.
bool shares_weights_of(const StageCost& stage, const MemoryRules& rules) {
  return !stage.buckets.empty() && rules.sharing.holds_share_of_weights();
}

/// The weights of a stage that a device keeps from one mini-batch to the next.
Bytes kept_weights_of(const StageCost& stage, const MemoryRules& rules, std::uint32_t members) {
  if (stage.buckets.empty() || rules.sharing.state != Sharded::weights) return stage.parameters;
  return share_of(stage.gathered, rules.sharing.sharers(members));
}

/// The weights that a device holds of a stage, beside those that pass by. Gathered ones that stay
/// stand beside its share.
Bytes weights_of(const StageCost& stage, const MemoryRules& rules, std::uint32_t members) {
  const Bytes kept = kept_weights_of(stage, rules, members);
  const bool stays = !stage.buckets.empty() && rules.sharing.state == Sharded::weights &&
                     !shares_weights_of(stage, rules);
  return stays ? stage.parameters + kept : kept;
}

}  // namespace

Bytes saved_bytes(const OpGraph& graph, const StageCosts& costs, const MemoryRules& rules,
                  const std::vector<std::uint32_t>& stages) {
  Bytes saved;
  for (const std::uint32_t s : stages) {
    const StageCost& stage = costs.stages[s];
    const std::uint32_t members = graph.members(s);
    saved +=
        kept_weights_of(stage, rules, members) + optimizer_bytes(rules, stage.stepped, members);
  }
  return saved;
}

void StageHolders::add(const Op& op, std::optional<StagePass>& last,
                       std::optional<StagePass>& last_backward) {
  const StagePass pass{op.stage.value, op.kind == OpKind::forward};
  if (last) neighbours.emplace(*last, pass);
  last = pass;
  if (!ends_backward(op.kind)) return;
  if (last_backward) backwards.emplace(*last_backward, pass);
  last_backward = pass;
}

StageHolders holders_of(const OpGraph& graph, const MemoryRules& rules) {
  StageHolders holders;
  for (std::uint32_t s = 0; s < graph.stage_slots.size(); ++s)
    holders.members.push_back(graph.members(s));
  if (rules.sharing.state < Sharded::gradients) return holders;
  std::vector<std::optional<StagePass>> last(graph.slots()), last_backward(graph.slots());
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    const Activity& activity = graph.activities[node];
    const std::uint32_t slot = graph.nodes[node].resource;
    if (activity.kind == ActivityKind::update)  // the next mini-batch begins anew
      last[slot] = last_backward[slot] = std::nullopt;
    if (!is_op(activity.kind)) continue;
    const Op op{static_cast<OpKind>(activity.kind), activity.stage, activity.micro_batch};
    holders.add(op, last[slot], last_backward[slot]);
  }
  return holders;
}

MemoryParts held_throughout(const StageHolders& holders, const StageCosts& costs,
                            const MemoryRules& rules, const std::vector<std::uint32_t>& stages) {
  MemoryParts held;
  bool shares_weights = false, shares_gradients = false;
  for (const std::uint32_t s : stages) {
    const StageCost& stage = costs.stages[s];
    const std::uint32_t members = holders.members[s];
    shares_weights = shares_weights || shares_weights_of(stage, rules);
    const bool reduces = !stage.buckets.empty() && rules.sharing.reduces_each_backward();
    shares_gradients = shares_gradients || reduces;
    held.weights += weights_of(stage, rules, members);
    held.gradients +=
        reduces ? share_of(stage.reduced, rules.sharing.sharers(members)) : stage.gradients;
    held.optimizer += optimizer_bytes(rules, stage.stepped, members);
    held.temporary = std::max(held.temporary, stage.temporary);
  }
  const std::size_t ahead = std::size_t{1} + rules.sharing.prefetch;
  if (shares_weights) held.weights += whole_weights(holders, costs, ahead, stages);
  if (shares_gradients) held.gradients += whole_gradients(holders, costs, stages);
  return held;
}

MemoryParts held_with_versions(const StageHolders& holders, const StageCosts& costs,
                               const MemoryRules& rules, const std::vector<std::uint32_t>& stages) {
  MemoryParts held = held_throughout(holders, costs, rules, stages);
  for (const std::uint32_t s : stages)
    held.stash += costs.stages[s].parameters * (rules.weight_versions[s] - 1);
  return held;
}

}  // namespace plumbline
