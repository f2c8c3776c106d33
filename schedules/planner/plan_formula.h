// What a placed plan costs by formula: its period, what bounds it, and the memory of each stage.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <vector>

#include "models/hardware/cluster.h"
#include "schedules/planner/flush_chain.h"
#include "schedules/planner/planner.h"

namespace plumbline {

/// 2 (r - 1) / r x bytes: what each of r members of a flat ring all-reduce sends.
double ring_bytes(Bytes bytes, std::uint32_t replicas);

/// One all-reduce over these devices in their order: of the ring's links the longest of 2 (r - 1)
/// latencies and ring_bytes over the bandwidth, in nanoseconds. 0 for one device or no bytes.
double all_reduce_ns(const Cluster& cluster, const std::vector<DeviceId>& devices, Bytes bytes);

/// What the formula needs to know of a stage.
struct FormulaStage {
  double forward_ns = 0;   ///< Of one micro-batch.
  double backward_ns = 0;  ///< Of one micro-batch.
  double update_ns = 0;    ///< Of one replica, once.
  Bytes parameters;
  Bytes stepped;  ///< Of the parameters; others of its group step the rest.
  Bytes gradients;
  Bytes gathered;  ///< As of a StageCost,
  Bytes reduced;   ///< this, too.
  Bytes activation;
  Checkpoints checkpoints;  ///< Where each layer makes its own activations again.
  Bytes cut_bytes;          ///< Behind it; 0 for the last.
  std::vector<DeviceId> devices;
  double recompute_ns = 0;  ///< To make all activations again; only where as few layers as fit do.
  Bytes entering;           ///< The crossing in front of it; 0 for the first. For the same.
};

/// The part of `recompute_ns` that a replica of a stage takes to fit into the memory. It grows with
/// the memory that is lacking, from nothing where all activations of so many micro-batches in
/// flight, and an input more, find room, to all where only those do that are kept of layers that
/// are run again: whole layers take a little more. `optimizer_state`: as for peak_memory.
double recompute_that_fits_ns(const FormulaStage& stage, std::uint32_t in_flight, Bytes memory,
                              const Residency& residency, double optimizer_state);

/// What goes around the ring of a stage's replicas as if all-reduced: its gradients; where these
/// share the optimizer, its gradients half of the way and its weights the other half.
Bytes reduced_bytes(const FormulaStage& stage, const Residency& residency);

/// F + B of one micro-batch and its part of an update, in nanoseconds, on one of the replicas.
double compute_ns(const FormulaStage& stage, const Residency& residency, std::uint32_t replicas);

/// How long a transfer of so many bytes is under way, in nanoseconds; 0 for none.
double transfer_ns(Bytes bytes, const Link& link);

/// The times of a stage whose replicas each see so many devices up to the end of the pipeline, and
/// reduce for so long.
FlushStage flush_stage(const FormulaStage& stage, const Residency& residency, std::uint32_t devices,
                       std::uint32_t replicas, double all_reduce_ns);

/// What the formula says.
struct FormulaTime {
  double period_ns = 0;
  Bottleneck bottleneck;
  std::optional<FlushShares> flush;
  Bytes traffic;
};

/// The time per micro-batch of a pipeline. On links it is at least the largest of
/// - for each ordered pair of devices in one innermost group: micro-batch m goes from replica m mod
///   r to replica m mod r', so the pair carries one in lcm(r, r') of the outputs;
/// - for each network card: all that leaves its group towards its level, outputs, gradients (the
///   other way, as many bytes) and ring traffic added up. What enters takes as long: wherever an
///   output leaves, its gradient enters, and a ring leaves a group as often as it enters it.
/// Links are full duplex; latencies of transfers hold nothing.
///
/// Without a flush (1F1B-RR whose warm-up is deep enough) on devices the largest of
/// - F + B and the part of an update that falls to a micro-batch, / r of each stage;
/// - all-reduce / r of each stage (an all-reduce a round of r micro-batches overlaps with the next
///   round: Narayanan et al. 2019, section 3.1, "max", at the true volume of a ring).
/// With a flush the iteration waits for chains of ops, transfers, all-reduces and updates: see
/// FlushChain; replicas that share a group send over its links where those are faster. The period
/// is its part that falls to a micro-batch.
///
/// Whoever comes first (compute, all-reduce, links; the chain of a flush in front of links; then
/// stage by stage) is the bottleneck among equals. Without `activation_transfers` outputs and
/// gradients cost nothing, but still count as traffic.
FormulaTime formula_time(const Cluster& cluster, const std::vector<FormulaStage>& stages,
                         const Residency& residency, bool activation_transfers);

/// Warm-ups with which strict alternation of F and B runs at the formula's rate on free links: 0
/// for the last stage, and in front of it ceil(r_behind (w_behind + 1) / r) + `extra`: a stage has
/// as many micro-batches in flight as the stage behind it, and one more on every replica. Where all
/// stages have as many replicas this is the published warm-up (see Residency); for others that is
/// often too short (1-2-1 with F 10 and B 20 per micro-batch at the ends, 20 and 40 in the middle:
/// 3, 1, 0 runs at 45, 4, 1, 0 at 30). `extra` is for links that take time.
std::vector<std::uint32_t> full_rate_warm_ups(const std::vector<std::uint32_t>& replicas,
                                              std::uint32_t extra);

/// What one replica of a stage may have received from the one in front.
struct HeldInputs {
  Bytes each;
  std::uint32_t count = 0;
};

/// An upper bound of what one replica of a stage holds: versions of its weights, gradients and
/// `optimizer_state` bytes for each byte of those that it steps, and `in_flight` micro-batches,
/// each with its activations (or what recomputation leaves of them) and the gradient received for
/// it; and its inputs. Nothing is stashed beyond that (design, "Memory"). Requires: a backward that
/// is not split.
double peak_memory(const FormulaStage& stage, std::uint32_t in_flight, const HeldInputs& inputs,
                   const Residency& residency, double optimizer_state);

/// How many inputs one of `replicas` may hold, of a stage behind one with `front_replicas`, each of
/// which has so many micro-batches in flight: those of these that come to this replica.
std::uint32_t inputs_held(std::uint32_t front_replicas, std::uint32_t front_in_flight,
                          std::uint32_t replicas);

}  // namespace plumbline
