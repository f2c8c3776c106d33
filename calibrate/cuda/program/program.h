// An op graph as work for streams: what is enqueued where, in which memory, behind which events.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/cuda/program/shares.h"
#include "calibrate/runtime/run_plan.h"
#include "calibrate/runtime/run_record.h"
#include "calibrate/training/stage_layout.h"
#include "schedules/order/weight_versions.h"

namespace plumbline {

/// None of something that is numbered.
inline constexpr std::uint32_t kNone32 = std::numeric_limits<std::uint32_t>::max();

/// What a stage's tensors take on a device, in bytes.
struct StageBytes {
  std::size_t parameters = 0;
  std::size_t input = 0;  ///< 0 for ids.
  std::size_t output = 0;
  std::size_t kept = 0;
  std::size_t left = 0;
  // In the place of `kept` where layers are run again by themselves:
  std::size_t checkpoints = 0;
  std::size_t again = 0;
  std::size_t recomputed_at_once = 0;
  std::vector<std::size_t> layers{};  ///< Where the parameters of each begin; empty: not known.

  /// Of the block `kept`.
  std::size_t in(KeptIn block) const {
    return block == KeptIn::kept ? kept : block == KeptIn::again ? again : recomputed_at_once;
  }
};

/// A stage on one slot. Its weights are numbered pieces of `parameters` bytes; an iteration begins
/// with the newest version in number 0.
struct StageOnSlot {
  std::uint32_t stage = 0;
  std::uint32_t slot = 0;
  std::uint32_t weights = 1;       ///< How many pieces it needs.
  std::uint32_t last_weights = 0;  ///< Where the newest version is after an iteration.
  /// The parameters that are updated here: all, or of a sharded optimizer a share of each bucket.
  std::vector<ByteRange> updated;
};

/// A place in a block, or in the weights of a stage.
struct CudaPiece {
  std::uint32_t block = kNone32;
  std::size_t at = 0;          ///< Bytes.
  std::uint32_t on = kNone32;  ///< Of weights: index into CudaProgram::stages.
  std::uint32_t weights = 0;   ///< And their number.
};

/// One thing that is enqueued. Numbers of blocks are indices into CudaProgram::blocks; kNone32 = it
/// has none.
struct CudaStep {
  enum class Kind : std::uint8_t {
    forward,
    backward,
    backward_input,
    backward_weight,
    update,
    copy,
    add_up,  ///< The gradients of the members of a stage, for a share of its parameters.
    // Ranks of a communicator, that begin together:
    send,
    receive,
    all_reduce,  ///< In place.
  };

  Kind kind = Kind::forward;
  std::uint32_t node = 0;            ///< Of the graph.
  std::uint32_t slot = 0;            ///< On one of whose streams it stands.
  std::uint32_t stream = 0;          ///< Which: index into CudaProgram::streams.
  bool sends = false;                ///< On a stream for sending; else on the compute stream.
  bool signals = false;              ///< Others wait for it: an event is recorded behind it.
  bool clears = false;               ///< An update: `gradients` become zero behind it.
  bool recomputes = false;           ///< A backward: what F kept is computed again before it, or
  KeptIn kept_in = KeptIn::kept;     ///< layer by layer within it, as this says. F, too.
  std::vector<std::uint32_t> waits;  ///< Steps of other streams, before it.

  /// Of a backward or W: the layers below `end`, down to `begin`. Without an end all.
  std::size_t end = kAllLayers;
  std::size_t begin = 0;
  std::uint32_t on = 0;           ///< Of a pass or an update: index into CudaProgram::stages.
  std::uint32_t micro_batch = 0;  ///< In the run.
  std::uint32_t sample = 0;       ///< The micro-batch's number in the data set.
  std::uint32_t weights = 0;      ///< The piece that is read.
  std::uint32_t made = 0;         ///< Of an update: the piece that is written; may be the same.
  std::uint32_t input = kNone32;
  std::uint32_t output =
      kNone32;  ///< Of the last stage: none, as losses have a place of their own.
  std::uint32_t kept = kNone32;
  std::uint32_t checkpoints = kNone32;
  std::uint32_t left = kNone32;  ///< Of a split backward.
  std::uint32_t output_gradient = kNone32;
  std::uint32_t input_gradient = kNone32;
  std::uint32_t gradients = kNone32;

  CudaPiece from;  ///< Of a copy, of a send.
  /// Of a copy, of a receive, of an all-reduce; of add_up: one of `members`, where the sum is
  /// written.
  CudaPiece to;
  std::size_t bytes = 0;
  std::vector<CudaPiece> members;  ///< Of add_up: what is added, in order.

  std::uint32_t communicator = kNone32;  ///< Index into CudaProgram::communicators.
  /// Of the first of steps that begin together, rank by rank: how many; they stand in a row.
  std::uint32_t together = 1;
};

/// Whether it only moves tensors: one call to a driver or a library.
constexpr bool is_moving(CudaStep::Kind kind) {
  return kind == CudaStep::Kind::copy || kind >= CudaStep::Kind::send;
}

/// One iteration of a run. Invariants: a step comes after all that it waits for; each piece of
/// memory is used again only by a step that is known to come after all its users, through waits
/// that are there anyway: nothing ever waits for memory, as in a prediction. Blocks of gradients
/// are zero whenever nobody holds them. After the iteration all blocks are free again.
///
/// It knows no device: the same program runs on any.
struct CudaProgram {
  struct Block {
    std::uint32_t slot = 0;
    std::size_t bytes = 0;
    bool is_gradients = false;
  };

  /// The compute streams of the slots in order; then those on which they send: one for each channel
  /// that carries transfers, one for the gradients of a slot that go to other members.
  struct Stream {
    std::uint32_t slot = 0;
    bool sends = false;
  };

  std::vector<CudaStep> steps;
  std::vector<Stream> streams;
  std::vector<StageOnSlot> stages;
  std::vector<Block> blocks;
  /// Slots that exchange tensors, by rank: of each way between two, of the members of each stage.
  std::vector<std::vector<std::uint32_t>> communicators;
  /// Of each slot: what its compute stream waits for before the iteration is over.
  std::vector<std::vector<std::uint32_t>> awaited;
  /// Of each node: the step that does it; kNone32 for moments, and for hops of an all-reduce after
  /// the first phase.
  std::vector<std::uint32_t> step_of;
  /// Of each hop of an all-reduce that moves something: the first of its steps; step_of is the
  /// last.
  std::vector<std::uint32_t> first_step_of;
  /// The order in which the nodes were taken: that of the graph, unless a fault was planted.
  std::vector<std::uint32_t> order;

  /// The bytes of all blocks and weights of a slot.
  std::size_t bytes_of(std::uint32_t slot, const std::vector<StageBytes>& sizes) const;
};

/// Why there is no program: the failure that the run ends with.
struct CudaProgramOrFailure {
  std::optional<CudaProgram> program;
  RunFailure failure;
};

struct CudaProgramRules {
  Recompute recompute = Recompute::none;
  UpdateRule updates;
  bool communicators = false;  ///< Tensors go between slots by these, not by copies and sums.
};

/// Lays the plan out. Transfers that overlap are copies on a stream of their channel; blocking ones
/// stand on the sender's compute stream and wait for the receiver's, which waits for them. In an
/// all-reduce each of r members adds up a share of the parameters: it is sent that share by all
/// others, adds in the order of the members, and sends the sum back. So replicas stay equal bit by
/// bit, and each sends 2 (r - 1) / r of the gradients, as in a ring. Where the optimizer is sharded
/// a member keeps the sum, updates its share, and sends the new weights. With communicators a
/// transfer is a send and a receive on streams of both ends, the compute streams where it blocks,
/// and an all-reduce one step of each member, for each bucket. Each part of a backward is a step,
/// and a bucket's reduction waits for its own. Weight versions are those of the ledger. Requires:
/// orders for every slot; no communicators for a sharded optimizer. Errors: orders that wait for
/// each other (deadlock), an op whose operands are not there (failed).
CudaProgramOrFailure cuda_program(const RunPlan& plan, const std::vector<StageBytes>& sizes,
                                  const DeviceOrders& orders, const CudaProgramRules& rules);

}  // namespace plumbline
