// The memory of each device over a run, with what makes its peak.
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

/// What decides how many bytes are held.
struct MemoryRules {
  double optimizer_state = 0;          ///< Bytes for each byte of parameters.
  Sharded sharded = Sharded::nothing;  ///< Between replicas, copies, groups.
  Recompute recompute = Recompute::none;
  std::vector<std::uint32_t>
      weight_versions;  ///< Of each stage; the first is the weights themselves.
};

/// The optimizer state on each of the `members` that hold a stage and step these parameters.
Bytes optimizer_bytes(const MemoryRules& rules, Bytes stepped, std::size_t members);

/// Bytes by what they hold.
struct MemoryParts {
  Bytes weights, gradients, optimizer, activations, stash, buffers;

  Bytes sum() const { return weights + gradients + optimizer + activations + stash + buffers; }
};

/// Weights, gradients and optimizer state of a device that holds these stages, from begin to end:
/// of gradients and weights that are shared its shares, and the two largest buckets whole.
MemoryParts held_throughout(const OpGraph& graph, const StageCosts& costs, const MemoryRules& rules,
                            const std::vector<std::uint32_t>& stages);

/// A change of one device's memory at one instant, in the order in which changes count.
struct MemoryStep {
  SimTime at;
  Bytes activations;  ///< Held from here on.
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

/// What counts first of that which happens at one instant.
enum class TieOrder : std::uint8_t { releases_first, reservations_first };

/// The steps of each slot: activations are held from the start of F to the end of B (W where
/// split), a received input and a received gradient from the start of the transfer to the end of B
/// (W); what recomputation leaves of that see StageMemory. At one instant releases come before
/// reservations, unless asked for the other way round: what a real run, in which no two things
/// happen at one instant, may hold at most.
std::vector<std::vector<MemoryStep>> memory_steps(const OpGraph& graph, const Trace& trace,
                                                  const StageCosts& costs,
                                                  const std::vector<Position>& positions,
                                                  const MemoryRules& rules,
                                                  TieOrder ties = TieOrder::releases_first);

/// The peaks of all slots, with what is there all the time. Among equal peaks the one with more
/// micro-batches in flight, then the first.
std::vector<DeviceMemory> measure_memory(const OpGraph& graph, const StageCosts& costs,
                                         const MemoryRules& rules,
                                         const std::vector<std::vector<MemoryStep>>& steps);

/// An upper bound of what any device holds, to refuse sums beyond 64 bits before they happen.
double max_memory(const StageCosts& costs, const MemoryRules& rules, std::uint32_t micro_batches);

}  // namespace plumbline
