// The memory of a device that each stage reserves and releases for one micro-batch.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "schedules/order/schedule.h"
#include "schedules/stages/recompute.h"
#include "schedules/stages/stage_costs.h"

namespace plumbline {

/// Activations, and buffers for received and sent tensors. If a backward is split, I and W take the
/// place of B.
struct StageMemory {
  bool first_of_position = false;
  bool last_of_position = false;
  Bytes kept;                 ///< Activations, from the start of F on.
  Bytes sent;                 ///< A buffer, from the start of F until its transfer has ended.
  Bytes again;                ///< Recomputed activations, from the start of B on.
  Bytes recomputed_by_input;  ///< The same from the start of I on.
  Bytes done;                 ///< Activations that the end of B releases.
  Bytes done_by_weight;       ///< The same for the end of W.
  Bytes received_input;       ///< 0 unless the input comes from another device.
  Bytes received_gradient;

  Bytes received() const { return received_input + received_gradient; }
};

/// The memory of all stages. A position is the neighbouring stages that one device runs as one.
///  - none: all activations are kept.
///  - full: only the output of a position for the next position on the same device is kept. The
///    first backward of a position recomputes the activations of all its stages. Other outputs are
///    sent from a buffer, since nobody keeps them.
///  - layers: the inputs that a layer gets from others on its device are kept. Outputs that only
///    other devices consume are sent from a buffer. B recomputes the largest need of a layer, I
///    that of all layers. Layers that are not recomputed keep all, including their output.
///  - selective: the same, but each layer keeps the activations that its `selective` does not
///    recompute, and its output.
std::vector<StageMemory> stage_memory(const StageCosts& costs,
                                      const std::vector<Position>& positions, Recompute recompute);

/// The memory of all stages for micro-batches of each length.
class MemoryByLength {
 public:
  MemoryByLength(const StageCosts& costs, const std::vector<Position>& positions,
                 Recompute recompute);

  std::uint32_t kinds() const { return static_cast<std::uint32_t>(kinds_.size()); }
  /// `kind`: see LengthCosts; 0 where all micro-batches are alike.
  const std::vector<StageMemory>& of(std::uint32_t kind) const { return kinds_[kind]; }
  std::uint32_t kind(std::uint32_t micro_batch, std::uint32_t copy) const {
    return lengths_ ? lengths_->kind(micro_batch, copy) : 0;
  }

 private:
  std::shared_ptr<const LengthCosts> lengths_;  ///< Null: all are alike.
  std::vector<std::vector<StageMemory>> kinds_;
};

}  // namespace plumbline
