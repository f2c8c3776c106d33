// What each stage reserves and releases of a device's memory for one micro-batch.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "schedules/order/schedule.h"
#include "schedules/stages/recompute.h"
#include "schedules/stages/stage_costs.h"

namespace plumbline {

/// Activations, and buffers for what is received and sent. Where a backward is split, I and W take
/// the place of B.
struct StageMemory {
  bool first_of_position = false;
  bool last_of_position = false;
  Bytes kept;                 ///< Activations, from the start of F on.
  Bytes sent;                 ///< A buffer, from the start of F until its transfer has ended.
  Bytes again;                ///< Activations that are made again, from the start of B on.
  Bytes recomputed_by_input;  ///< The same from the start of I on.
  Bytes done;                 ///< Activations that the end of B releases.
  Bytes done_by_weight;       ///< The same for the end of W.
  Bytes received_input;       ///< 0 unless the stage gets its input from another device.
  Bytes received_gradient;

  Bytes received() const { return received_input + received_gradient; }
};

/// Of all stages. A position is what one device runs of neighbouring stages.
///  - none: all activations are kept.
///  - full: nothing is but what a position makes for the next one on the same device; the first
///    backward of a position makes the activations of all its stages again. Its outputs are sent
///    from a buffer, since nobody keeps them.
///  - layers: what a layer consumes of others on its device is kept; outputs that only
///    others consume are sent from a buffer. B makes again the most that a layer needs, I all.
///    Layers that are not run again keep all, their output too.
///  - selective: the same, but what is kept is what each layer's `selective` leaves, its output
///    too.
std::vector<StageMemory> stage_memory(const StageCosts& costs,
                                      const std::vector<Position>& positions, Recompute recompute);

}  // namespace plumbline
