// The memory of each device over a run, with the parts of its peak.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedules/stages/partition.h"
#include "schedules/stages/recompute.h"
#include "schedules/stages/sharding.h"
#include "schedules/stages/stage_costs.h"
#include "sim/engine/trace.h"
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

/// What decides how much of a stage each of its devices holds throughout.
struct StageHolders {
  std::vector<std::uint32_t> members;  ///< The devices that hold each stage, in all copies.
  bool has_more = false;  ///< Whether a mini-batch has a backward behind its first one.
};

StageHolders holders_of(const OpGraph& graph);

/// Weights, gradients and optimizer state that a device with these stages holds during the whole
/// run, and the room for the temporary tensors of a backward. Of shared gradients and weights it
/// holds its shares, plus the two largest buckets whole.
MemoryParts held_throughout(const StageHolders& holders, const StageCosts& costs,
                            const MemoryRules& rules, const std::vector<std::uint32_t>& stages);

/// The same with the old versions of the weights.
MemoryParts held_with_versions(const StageHolders& holders, const StageCosts& costs,
                               const MemoryRules& rules, const std::vector<std::uint32_t>& stages);

/// The weights and the optimizer state that a device with these stages saves for a checkpoint: of
/// what copies share, its share.
Bytes saved_bytes(const OpGraph& graph, const StageCosts& costs, const MemoryRules& rules,
                  const std::vector<std::uint32_t>& stages);

/// A change of one device's memory at one instant. Changes at the same instant are in order.
struct MemoryStep {
  SimTime at;
  Bytes activations;  ///< Activations held from here on.
  Bytes buffers;
  std::int32_t in_flight = 0;
  std::uint32_t node = 0;  ///< The activity that begins or ends here.
};

/// One device over the run.
struct DeviceMemory {
  MemoryParts peak;
  std::string peak_op;  ///< The op (or the op whose input arrives) that makes the peak.
  std::uint32_t peak_in_flight = 0;  ///< Micro-batches between the start of F and the end of B (W).
  std::uint32_t weight_versions = 1;
};

/// The order of events at the same instant.
enum class TieOrder : std::uint8_t { releases_first, reservations_first };

/// The memory steps of each slot. Activations are held from the start of F to the end of B (W if
/// split). A received input and a received gradient are held from the start of the transfer to the
/// end of B (W). For recomputation see StageMemory. At the same instant releases come before
/// reservations, unless `ties` asks for the opposite. The opposite gives the most that a real run
/// may hold, since its events never coincide exactly.
std::vector<std::vector<MemoryStep>> memory_steps(const OpGraph& graph, const Trace& trace,
                                                  const StageCosts& costs,
                                                  const std::vector<Position>& positions,
                                                  const MemoryRules& rules,
                                                  TieOrder ties = TieOrder::releases_first);

/// The peaks of all slots, including the bytes held throughout. Among equal peaks, the one with
/// more micro-batches in flight counts, then the first.
std::vector<DeviceMemory> measure_memory(const OpGraph& graph, const StageCosts& costs,
                                         const MemoryRules& rules,
                                         const std::vector<std::vector<MemoryStep>>& steps);

/// The same over memory_steps(), which need not be kept.
std::vector<DeviceMemory> measure_memory(const OpGraph& graph, const Trace& trace,
                                         const StageCosts& costs,
                                         const std::vector<Position>& positions,
                                         const MemoryRules& rules,
                                         TieOrder ties = TieOrder::releases_first);

/// The peaks of all slots as sums, for those who need no more: equal to the sums of
/// measure_memory() over memory_steps().
std::vector<Bytes> peak_memory(const OpGraph& graph, const Trace& trace, const StageCosts& costs,
                               const std::vector<Position>& positions, const MemoryRules& rules);

/// An upper bound of the bytes on any device. It serves to refuse sums beyond 64 bits before they
/// are computed.
double max_memory(const StageCosts& costs, const MemoryRules& rules, std::uint32_t micro_batches);

}  // namespace plumbline
