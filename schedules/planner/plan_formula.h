// The costs of a placed plan by formula: its period, its bottleneck, and the memory of each stage.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <vector>

#include "models/hardware/cluster.h"
#include "schedules/planner/flush_chain.h"
#include "schedules/planner/planner.h"

namespace plumbline {

/// The bytes that each of r members of a flat ring all-reduce sends: 2 (r - 1) / r x bytes.
double ring_bytes(Bytes bytes, std::uint32_t replicas);

/// The time of one all-reduce over these devices in their order, in nanoseconds. It is the longest
/// over the ring's links of 2 (r - 1) latencies and ring_bytes over the bandwidth. 0 for one device
/// or no bytes.
double all_reduce_ns(const Cluster& cluster, const std::vector<DeviceId>& devices, Bytes bytes);

/// The formula's input for a stage.
struct FormulaStage {
  double forward_ns = 0;   ///< For one micro-batch.
  double backward_ns = 0;  ///< For one micro-batch.
  double update_ns = 0;    ///< For one update of one replica.
  Bytes parameters;
  Bytes stepped;  ///< Its part of the parameters; others of its group step the rest.
  Bytes gradients;
  Bytes gathered;  ///< As in a StageCost,
  Bytes reduced;   ///< and so is this.
  Bytes activation;
  Checkpoints checkpoints;  ///< Used if each layer recomputes its own activations.
  Bytes cut_bytes;          ///< The output behind it; 0 for the last stage.
  std::vector<DeviceId> devices;
  /// The time to recompute all activations. Used only if as few layers recompute as memory needs.
  double recompute_ns = 0;
  Bytes entering;  ///< The crossing in front of it; 0 for the first. Same use.
};

/// The part of `recompute_ns` that a replica of a stage needs to fit into the memory. It grows with
/// the lack of memory. It is 0 if all activations of the micro-batches in flight, and one more
/// input, fit. It is all of it if only the checkpoints of recomputed layers fit. Whole layers take
/// a little more. `optimizer_state`: as for peak_memory.
double recompute_that_fits_ns(const FormulaStage& stage, std::uint32_t in_flight, Bytes memory,
                              const Residency& residency, double optimizer_state);

/// The bytes around the ring of a stage's replicas, as if all-reduced: its gradients. With a
/// sharded optimizer, half of the way for its gradients and half for its weights.
Bytes reduced_bytes(const FormulaStage& stage, const Residency& residency);

/// The time of F + B of one micro-batch and its part of an update on one of the replicas, in
/// nanoseconds.
double compute_ns(const FormulaStage& stage, const Residency& residency, std::uint32_t replicas);

/// The time of a transfer of `bytes` bytes, in nanoseconds; 0 for no bytes.
double transfer_ns(Bytes bytes, const Link& link);

/// The times of a stage. `devices` is the number of devices from the stage to the end of the
/// pipeline, and `all_reduce_ns` the time of its all-reduce.
FlushStage flush_stage(const FormulaStage& stage, const Residency& residency, std::uint32_t devices,
                       std::uint32_t replicas, double all_reduce_ns);

/// The results of the formula.
struct FormulaTime {
  double period_ns = 0;
  Bottleneck bottleneck;
  std::optional<FlushShares> flush;
  Bytes traffic;
};

/// The time per micro-batch of a pipeline. Its bound by the links is the largest of
/// - for each ordered pair of devices in one innermost group: micro-batch m goes from replica m mod
///   r to replica m mod r', so the pair carries one in lcm(r, r') of the outputs;
/// - for each network card: the sum of all bytes that leave its group towards its level: outputs,
///   gradients (the other way, as many bytes) and ring traffic. Entering traffic takes as long:
///   wherever an output leaves, its gradient enters, and a ring leaves a group as often as it
///   enters it.
/// Links are full duplex; the latency of a transfer keeps no link busy.
///
/// Its bound by the devices without a flush (1F1B-RR with a warm-up that is deep enough) is the
/// largest of
/// - for each stage: (F + B + a micro-batch's part of an update) / r;
/// - for each stage: all-reduce / r (one all-reduce per round of r micro-batches overlaps with the
///   next round: Narayanan et al. 2019, section 3.1, "max", at the true volume of a ring).
/// With a flush, the iteration waits for chains of ops, transfers, all-reduces and updates: see
/// FlushChain. Replicas that share a group send over its links if those are faster. The period is
/// the iteration's part for one micro-batch.
///
/// Among equals the bottleneck is the first in this order: compute, all-reduce, links (the chain of
/// a flush before links), then stage by stage. Without `activation_transfers`, outputs and
/// gradients cost nothing, but still count as traffic.
FormulaTime formula_time(const Cluster& cluster, const std::vector<FormulaStage>& stages,
                         const Residency& residency, bool activation_transfers);

/// The warm-ups with which strict alternation of F and B runs at the formula's rate on free links.
/// They are 0 for the last stage, and ceil(r_behind (w_behind + 1) / r) + `extra` in front of it.
/// So a stage has as many micro-batches in flight as the stage behind it, and one more on every
/// replica. If all stages have the same number of replicas, this is the published warm-up (see
/// Residency). Otherwise the published one is often too short. Example: 1-2-1 with F 10 and B 20
/// per micro-batch at the ends, 20 and 40 in the middle: 3, 1, 0 runs at 45, but 4, 1, 0 at 30.
/// `extra` is for links that take time.
std::vector<std::uint32_t> full_rate_warm_ups(const std::vector<std::uint32_t>& replicas,
                                              std::uint32_t extra);

/// The inputs that one replica of a stage may have received from the stage in front.
struct HeldInputs {
  Bytes each;
  std::uint32_t count = 0;
};

/// An upper bound of the memory of one replica of a stage. It holds the versions of its weights,
/// its gradients, and `optimizer_state` bytes for each byte of the parameters that it steps. It
/// holds `in_flight` micro-batches, each with its activations (or their part that recomputation
/// keeps) and its received gradient. It holds its inputs. Nothing else is stashed (design,
/// "Memory"). Requires: a backward that is not split.
double peak_memory(const FormulaStage& stage, std::uint32_t in_flight, const HeldInputs& inputs,
                   const Residency& residency, double optimizer_state);

/// The number of inputs that one of a stage's `replicas` may hold. The stage in front has
/// `front_replicas`, each with `front_in_flight` micro-batches in flight. Those that come to this
/// replica count.
std::uint32_t inputs_held(std::uint32_t front_replicas, std::uint32_t front_in_flight,
                          std::uint32_t replicas);

}  // namespace plumbline
