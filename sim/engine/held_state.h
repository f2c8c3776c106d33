// What devices hold throughout a run: weights, gradients and optimizer state, whole or shared.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "schedules/order/op.h"
#include "schedules/stages/recompute.h"
#include "schedules/stages/sharding.h"
#include "schedules/stages/stage_costs.h"
#include "sim/graph/op_graph.h"

namespace plumbline {

/// The rules that decide how many bytes a device holds.
struct MemoryRules {
  double optimizer_state = 0;  ///< Bytes per byte of parameters.
  Sharing sharing{};           ///< The state shared between replicas, copies and groups.
  Recompute recompute = Recompute::none;
  std::vector<std::uint32_t>
      weight_versions;  ///< Versions per stage; the first is the weights themselves.
};

/// The optimizer state on each of the `members` devices that hold a stage and update `stepped`
/// bytes of parameters.
Bytes optimizer_bytes(const MemoryRules& rules, Bytes stepped, std::uint32_t members);

/// Bytes by their use.
struct MemoryParts {
  Bytes weights, gradients, optimizer, activations, stash, buffers;
  Bytes temporary;  ///< The most that the backward of one layer holds besides.

  Bytes sum() const {
    return weights + gradients + optimizer + activations + stash + buffers + temporary;
  }
};

/// A pass of a stage on a device.
struct StagePass {
  std::uint32_t stage = 0;
  bool is_forward = false;

  friend auto operator<=>(const StagePass&, const StagePass&) = default;
};

/// What decides how much of a stage each of its devices holds throughout.
struct StageHolders {
  std::vector<std::uint32_t> members;  ///< The devices that hold each stage, in all copies.
  /// Passes that a device runs one behind the other within a mini-batch, and those that make
  /// gradients, one behind the other whatever stands between them. Each pair once; only where
  /// gradients or weights are shared.
  std::set<std::pair<StagePass, StagePass>> neighbours;
  std::set<std::pair<StagePass, StagePass>> backwards;

  /// Adds the next op of a device; `last` and `last_backward` are its own, nothing at first.
  void add(const Op& op, std::optional<StagePass>& last, std::optional<StagePass>& last_backward);
};

StageHolders holders_of(const OpGraph& graph, const MemoryRules& rules);

/// Weights, gradients and optimizer state that a device with these stages holds during the whole
/// run, and the room for the temporary tensors of a backward. Of weights that each pass gathers and
/// frees it holds its shares, plus the buckets that are whole at a time: the one that is in use and
/// those that are gathered ahead. Of gradients that each backward reduces it holds its shares, plus
/// the two buckets that may be whole. Weights that stay stand beside the shares.
MemoryParts held_throughout(const StageHolders& holders, const StageCosts& costs,
                            const MemoryRules& rules, const std::vector<std::uint32_t>& stages);

/// The same with the old versions of the weights.
MemoryParts held_with_versions(const StageHolders& holders, const StageCosts& costs,
                               const MemoryRules& rules, const std::vector<std::uint32_t>& stages);

/// The weights and the optimizer state that a device with these stages saves for a checkpoint: of
/// what copies share, its share.
Bytes saved_bytes(const OpGraph& graph, const StageCosts& costs, const MemoryRules& rules,
                  const std::vector<std::uint32_t>& stages);

}  // namespace plumbline
