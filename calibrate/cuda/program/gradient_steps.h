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

/// Writes what adds up the gradients of a stage's devices, and what sends updated weights.
class GradientSteps {
 public:
  /// The draft outlives it.
  explicit GradientSteps(ProgramDraft& draft);

  /// What a device updates of a stage.
  std::vector<ByteRange> updated_by(std::uint32_t stage, std::uint32_t slot) const;

  /// Where a device adds the gradients of a micro-batch.
  Held gradients_of(std::uint32_t stage, std::uint32_t m, std::uint32_t slot, std::uint32_t stream);

  /// What begins here; its hops stand behind it. All backwards of a round stand before its first
  /// reduction.
  void begin_collective(std::uint32_t node);

  /// The next hop of what has begun: it carries the steps of its sender.
  void write_hop(std::uint32_t node);

  /// The gradients that a device updates with in node `node`, summed over all members, and behind
  /// all that reads them: whatever the graph says, the sums are there, and those who read have
  /// read.
  Held take_gradients(std::uint32_t stage, std::uint32_t m, std::uint32_t slot, std::uint32_t node);

  /// Comes behind the update: the round is over when all members had theirs.
  void end_update(std::uint32_t stage, std::uint32_t m);

  /// Of rounds that no update has taken: the gradients are zero again for the next iteration. The
  /// last backward that adds to them clears them behind it.
  void clear_leftovers();

 private:
  /// The gradients of one update, apart for each device of the stage.
  struct Round {
    std::vector<Held> own;    ///< By member; its own until they are reduced, then those of all.
    std::size_t reduced = 0;  ///< So many of its buckets.
    std::size_t updated = 0;
  };

  /// The micro-batches that one update of a stage covers.
  std::uint32_t round_length(std::uint32_t stage) const;

  Round& round_of(std::uint32_t stage, std::uint32_t m);

  /// Each member adds up its share of the range and, in an all-reduce, sends the sum to all others.
  /// Until a hop comes that the steps belong to, they are those of `node`; `made` ends the
  /// backwards.
  void reduce(Round& round, const ByteRange& range, ActivityKind kind, std::uint32_t node,
              const std::vector<std::uint32_t>& made);

  /// Each member sends what it has updated to all others, behind the updates of all: nobody reads
  /// weights any more.
  void gather(std::uint32_t node);

  /// One step of each member.
  void write_all_reduce(const Round& round, const ByteRange& range, std::uint32_t node,
                        const std::vector<std::uint32_t>& made);

  /// The next step on the stream on which a slot hands on gradients, with its waits.
  CudaStep gathering_step(CudaStep::Kind kind, std::uint32_t slot, std::uint32_t node);

  std::uint32_t append_gathering(CudaStep step, std::initializer_list<const Held*> held);

  void clear_behind_last(std::uint32_t block);

  ProgramDraft& draft_;
  const OpGraph& graph_;
  const std::vector<StageBytes>& sizes_;
  CudaProgram& program_;
  StepList& steps_;
  std::vector<std::vector<ByteRange>> buckets_;  ///< Of each stage's gradients.
  /// Of each stage, by number.
  std::vector<std::map<std::uint32_t, Round>> rounds_;
  /// By the begin of a collective and the slot that sends: steps that no hop has yet.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> sent_;
};

}  // namespace plumbline
