// A lower bound of a device's memory, from the order of its ops alone.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/stage_memory.h"
#include "sim/setup/training_setup.h"

namespace plumbline {

/// Lower bounds of the devices' memory peaks, for any numbers of recomputed layers. They count the
/// bytes that are held at the begin of an op for any times of the ops. These are the activations of
/// the micro-batches in flight, the tensors received for them, and the bytes that the op itself
/// needs. Tensors that arrive early, and tensors that wait to be sent, may come on top.
class MemoryFloor {
 public:
  /// `by_count[n][s]`: the memory of stage s with n of its layers recomputed, or all, if it has
  /// fewer. Requires: a setup with its order.
  MemoryFloor(const TrainingSetup& setup, std::vector<std::vector<StageMemory>> by_count);

  /// The lower bound of a slot of the schedule. `counts` has the number of recomputed layers of
  /// each stage; below 0: the number that holds least.
  Bytes of(std::uint32_t slot, const std::vector<std::int64_t>& counts) const;

  /// With fewer recomputed layers, summed over the stages of the slot, its floor is above `limit`,
  /// whichever layers they are. The largest number if it is with all of them.
  std::int64_t least_layers(std::uint32_t slot, Bytes limit) const;

 private:
  /// The begin of an op.
  struct Moment {
    OpKind kind = OpKind::forward;
    std::uint32_t stage = 0;  ///< The op's stage, as a place in the slot's stages.
    /// Counts for each stage of the slot. `in_flight`: micro-batches after F and before B,
    /// including the op's. `waiting`: those that wait for W, excluding the op's.
    std::vector<std::uint32_t> in_flight, waiting;
  };
  struct Slot {
    std::vector<std::uint32_t> stages;
    Bytes throughout;  ///< Weights, gradients, optimizer state.
    std::vector<Moment> moments;
  };

  /// The moments that hold more than any other, of their kind and stage.
  static std::vector<Moment> moments_of(const std::vector<std::uint32_t>& stages,
                                        const std::vector<Op>& list);

  template <class Memory>
  static Bytes held_besides(const Moment& moment, Memory&& memory);

  std::vector<std::vector<StageMemory>> by_count_;
  std::vector<StageMemory> min_;  ///< Per stage, the minimum of each value.
  std::vector<Slot> slots_;
};

}  // namespace plumbline
