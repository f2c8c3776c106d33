// The steps that add up gradients of a stage's devices and send new weights.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <utility>
#include <vector>

#include "calibrate/cuda/program/program_draft.h"
#include "calibrate/cuda/program/shares.h"

namespace plumbline {

/// Writes the steps that add up the gradients of a stage's devices and those that send updated
/// weights.
class GradientSteps {
 public:
  /// The draft must outlive this object.
  explicit GradientSteps(ProgramDraft& draft);

  /// The parameters of a stage that a device updates, as ranges of bytes.
  std::vector<ByteRange> updated_by(std::uint32_t stage, std::uint32_t slot) const;

  /// The block to which a device adds the gradients of a micro-batch.
  Held gradients_of(std::uint32_t stage, std::uint32_t m, std::uint32_t slot, std::uint32_t stream);

  /// Writes the collective that begins at `node`. In the graph's order its hops come after `node`,
  /// and all backwards of a round come before its first reduction.
  void begin_collective(std::uint32_t node);

  /// Writes the next hop of a collective that has begun. The steps of its sender belong to this
  /// hop.
  void write_hop(std::uint32_t node);

  /// The gradients for a device's update in node `node`, summed over all members. The update waits
  /// for the sums and for all steps that read the gradients, whatever edges the graph has.
  Held take_gradients(std::uint32_t stage, std::uint32_t m, std::uint32_t slot, std::uint32_t node);

  /// Called after an update. The round is over when all members have had theirs.
  void end_update(std::uint32_t stage, std::uint32_t m);

  /// Clears the gradients of rounds that no update has taken, so that they are zero for the next
  /// iteration. The last backward that adds to them clears them after it.
  void clear_leftovers();

 private:
  /// The gradients of one update, separate for each device of the stage.
  struct Round {
    std::vector<Held> own;    ///< By member: its own; once reduced, those of all.
    std::size_t reduced = 0;  ///< The number of its buckets that are reduced.
    std::size_t updated = 0;
  };

  /// The number of micro-batches that one update of a stage covers.
  std::uint32_t round_length(std::uint32_t stage) const;

  Round& round_of(std::uint32_t stage, std::uint32_t m);

  /// Each member adds up its share of the range and, in an all-reduce, sends the sum to all others.
  /// The steps belong to `node` until a hop takes them. The steps `made` end the backwards.
  void reduce(Round& round, const ByteRange& range, ActivityKind kind, std::uint32_t node,
              const std::vector<std::uint32_t>& made);

  /// Each member sends the weights that it has updated to all others. This comes after the updates
  /// of all members, when nobody reads weights any more.
  void gather(std::uint32_t node);

  /// Writes one step for each member.
  void write_all_reduce(const Round& round, const ByteRange& range, std::uint32_t node,
                        const std::vector<std::uint32_t>& made);

  /// A new step, with its waits, on the stream on which a slot sends gradients.
  CudaStep gathering_step(CudaStep::Kind kind, std::uint32_t slot, std::uint32_t node);

  std::uint32_t append_gathering(CudaStep step, std::initializer_list<const Held*> held);

  void clear_behind_last(std::uint32_t block);

  ProgramDraft& draft_;
  const OpGraph& graph_;
  const std::vector<StageBytes>& sizes_;
  CudaProgram& program_;
  StepList& steps_;
  std::vector<std::vector<ByteRange>> buckets_;  ///< The buckets of each stage's gradients.
  /// One map per stage, by the round's number.
  std::vector<std::map<std::uint32_t, Round>> rounds_;
  /// The steps that no hop has taken yet, by the begin of their collective and the sending slot.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> sent_;
};

}  // namespace plumbline
