// What a device holds at least, by the order of its ops alone.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/stage_memory.h"
#include "sim/prediction/outcome.h"

namespace plumbline {

/// Lower bounds of the peaks of devices for other numbers of recomputed layers than those of the
/// run that it is made from. They count what is held when an op begins whatever the times are: the
/// activations of the micro-batches in flight, what was received for them, and what the op itself
/// needs. What arrives earlier than it is needed, and what waits to be sent, may come on top.
class MemoryFloor {
 public:
  /// `by_count[n][s]`: what stage s reserves where n of its layers are recomputed, or all, if it
  /// has fewer.
  MemoryFloor(const Outcome& outcome, std::vector<std::vector<StageMemory>> by_count);

  /// Of a slot of the schedule, with so many recomputed layers of each stage; below 0: with
  /// whichever number holds least.
  Bytes of(std::uint32_t slot, const std::vector<std::int64_t>& counts) const;

 private:
  /// The begin of an op.
  struct Moment {
    OpKind kind = OpKind::forward;
    std::uint32_t stage = 0;  ///< Of the op, as a place in the slot's stages.
    /// Of each stage of the slot: the micro-batches that are forward and not backward, the op's
    /// included; and those that wait for W, the op's excluded.
    std::vector<std::uint32_t> in_flight, waiting;

    friend auto operator<=>(const Moment&, const Moment&) = default;
  };
  struct Slot {
    std::vector<std::uint32_t> stages;
    Bytes throughout;  ///< Weights, gradients, optimizer state.
    std::vector<Moment> moments;
  };

  static std::vector<Moment> moments_of(const std::vector<std::uint32_t>& stages,
                                        const std::vector<Op>& list);

  std::vector<std::vector<StageMemory>> by_count_;
  std::vector<StageMemory> min_;  ///< Of each stage, the least of everything.
  std::vector<Slot> slots_;
};

}  // namespace plumbline
