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
#include "schedules/stages/stage_costs.h"
#include "sim/engine/held_state.h"
#include "sim/engine/trace.h"
#include "sim/graph/op_graph.h"

namespace plumbline {

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
