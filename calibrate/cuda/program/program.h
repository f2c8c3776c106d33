// An op graph as work for streams: the steps of each stream, their memory and their events.
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

/// The number that means "none".
inline constexpr std::uint32_t kNone32 = std::numeric_limits<std::uint32_t>::max();

/// The sizes of a stage's tensors on a device, in bytes.
struct StageBytes {
  std::size_t parameters = 0;
  std::size_t input = 0;  ///< 0 for ids.
  std::size_t output = 0;
  std::size_t kept = 0;
  std::size_t left = 0;
  // In place of `kept` where layers are recomputed one by one:
  std::size_t checkpoints = 0;
  std::size_t again = 0;
  std::size_t recomputed_at_once = 0;
  std::vector<std::size_t> layers{};  ///< Start of each layer's parameters; empty = not known.

  /// The bytes of the block that is used in place of `kept`.
  std::size_t in(KeptIn block) const {
    return block == KeptIn::kept ? kept : block == KeptIn::again ? again : recomputed_at_once;
  }
};

/// A stage on one slot. Its weights are numbered pieces of `parameters` bytes. An iteration begins
/// with the newest version in piece 0.
struct StageOnSlot {
  std::uint32_t stage = 0;
  std::uint32_t slot = 0;
  std::uint32_t weights = 1;       ///< The number of pieces that it needs.
  std::uint32_t last_weights = 0;  ///< The newest version's piece after an iteration.
  /// The parameters that are updated here: all, or with a sharded optimizer a share of each bucket.
  std::vector<ByteRange> updated;
};

/// A place in a block, or in the weights of a stage.
struct CudaPiece {
  std::uint32_t block = kNone32;
  std::size_t at = 0;          ///< Bytes.
  std::uint32_t on = kNone32;  ///< For weights, an index into CudaProgram::stages.
  std::uint32_t weights = 0;   ///< The number of these weights.
};

/// One step that is enqueued. Block numbers are indices into CudaProgram::blocks; kNone32 = none.
struct CudaStep {
  enum class Kind : std::uint8_t {
    forward,
    backward,
    backward_input,
    backward_weight,
    recompute,  ///< A forward again, early: its backward is another step.
    update,
    copy,
    add_up,  ///< Adds the members' gradients for a share of a stage's parameters.
    // Steps of the ranks of a communicator, which begin together:
    send,
    receive,
    all_reduce,  ///< In place.
  };

  Kind kind = Kind::forward;
  std::uint32_t node = 0;         ///< The node of the graph.
  std::uint32_t slot = 0;         ///< The slot whose stream it is on.
  std::uint32_t stream = 0;       ///< Its stream: index into CudaProgram::streams.
  bool sends = false;             ///< It is on a stream for sending; else on the compute stream.
  bool signals = false;           ///< Other steps wait for it: an event is recorded behind it.
  bool clears = false;            ///< For an update, `gradients` become zero after it.
  bool recomputes = false;        ///< For a backward, the activations are recomputed before it, or
  KeptIn kept_in = KeptIn::kept;  ///< layer by layer within it, by this block. F uses it, too.
  std::vector<std::uint32_t> waits;  ///< Earlier steps of other streams.

  /// For a backward or W, the layers below `end`, down to `begin`. The default is all layers.
  std::size_t end = kAllLayers;
  std::size_t begin = 0;
  std::uint32_t on = 0;           ///< For a pass or an update, an index into CudaProgram::stages.
  std::uint32_t micro_batch = 0;  ///< The micro-batch's number in the run.
  std::uint32_t sample = 0;       ///< The micro-batch's number in the data set.
  std::uint32_t weights = 0;      ///< The piece of weights that is read.
  std::uint32_t made = 0;         ///< For an update, the piece that is written; may be the same.
  std::uint32_t input = kNone32;
  std::uint32_t output = kNone32;  ///< None for the last stage: losses have their own place.
  std::uint32_t kept = kNone32;
  std::uint32_t checkpoints = kNone32;
  std::uint32_t left = kNone32;  ///< For a split backward only.
  std::uint32_t output_gradient = kNone32;
  std::uint32_t input_gradient = kNone32;
  std::uint32_t gradients = kNone32;

  CudaPiece from;  ///< The source of a copy or a send.
  /// The target of a copy, a receive or an all-reduce. For add_up, the one of `members` where the
  /// sum is written.
  CudaPiece to;
  std::size_t bytes = 0;
  std::vector<CudaPiece> members;  ///< For add_up, the summands in order.

  std::uint32_t communicator = kNone32;  ///< Index into CudaProgram::communicators.
  /// The number of steps that begin together; set in the first of them. They are consecutive, rank
  /// by rank.
  std::uint32_t together = 1;
};

/// Whether a step only moves tensors, with one call to a driver or a library.
constexpr bool is_moving(CudaStep::Kind kind) {
  return kind == CudaStep::Kind::copy || kind >= CudaStep::Kind::send;
}

/// One iteration of a run. Invariants: a step comes after all steps that it waits for. Memory is
/// reused only by a step that comes after all its users anyway, through other waits. So nothing
/// ever waits for memory, as in a prediction. Blocks of gradients are zero whenever nobody holds
/// them. After the iteration all blocks are free again.
///
/// The program depends on no device: it runs on any.
struct CudaProgram {
  struct Block {
    std::uint32_t slot = 0;
    std::size_t bytes = 0;
    bool is_gradients = false;
  };

  /// First come the compute streams of the slots in order. Then come the streams for sending: one
  /// per channel that carries transfers, and one per slot for gradients that go to other members.
  struct Stream {
    std::uint32_t slot = 0;
    bool sends = false;
  };

  std::vector<CudaStep> steps;
  std::vector<Stream> streams;
  std::vector<StageOnSlot> stages;
  std::vector<Block> blocks;
  /// Groups of slots that exchange tensors, by rank: one for each direction between two slots, and
  /// one for the members of each stage.
  std::vector<std::vector<std::uint32_t>> communicators;
  /// For each slot, the steps that its compute stream waits for before the iteration ends.
  std::vector<std::vector<std::uint32_t>> awaited;
  /// For each node, the step that executes it. kNone32 for moments, and for hops of an all-reduce
  /// after the first phase.
  std::vector<std::uint32_t> step_of;
  /// For each hop of an all-reduce that moves something, its first step; step_of is the last one.
  std::vector<std::uint32_t> first_step_of;
  /// The order in which the nodes were taken: the graph's order, unless a fault was planted.
  std::vector<std::uint32_t> order;

  /// The bytes of all blocks and weights of a slot.
  std::size_t bytes_of(std::uint32_t slot, const std::vector<StageBytes>& sizes) const;
};

/// A program, or the failure with which the run ends.
struct CudaProgramOrFailure {
  std::optional<CudaProgram> program;
  RunFailure failure;
};

struct CudaProgramRules {
  Recompute recompute = Recompute::none;
  UpdateRule updates;
  bool communicators = false;  ///< Communicators, not copies and sums, move tensors.
};

/// Makes the program of a plan. Transfers that overlap are copies on a stream of their channel.
/// Blocking transfers are on the sender's compute stream and wait for the receiver's, which waits
/// for them. In an all-reduce each of r members adds up a share of the parameters. The others send
/// it their parts of that share; it adds them in the order of the members, and sends the sum back.
/// So replicas stay equal bit by bit, and each sends 2 (r - 1) / r of the gradients, as in a ring.
/// With a sharded optimizer a member keeps the sum, updates its share, and sends the new weights.
/// With communicators a transfer is a send and a receive on streams of both ends; these are the
/// compute streams if it blocks. An all-reduce is then one step of each member for each bucket.
/// Each part of a backward is a step, and a bucket's reduction waits for its own part. Weight
/// versions are those of the ledger. Requires: orders for every slot; no communicators for a
/// sharded optimizer. Errors: orders that wait for each other (deadlock); an op whose operands are
/// missing (failed).
CudaProgramOrFailure cuda_program(const RunPlan& plan, const std::vector<StageBytes>& sizes,
                                  const DeviceOrders& orders, const CudaProgramRules& rules);

}  // namespace plumbline
