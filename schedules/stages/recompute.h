// What of a forward is computed again for the backward, and what is kept for that.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>

#include "models/profile/profile.h"

namespace plumbline {

/// Recomputation, also called activation checkpointing (Chen et al. 2016, "Training Deep Nets with
/// Sublinear Memory Cost"). Whatever is computed again, B (I where split) grows by F.
enum class Recompute : std::uint8_t {
  none,  ///< All activations are kept.
  /// Only the input of a stage is kept; its backward runs the whole forward again first.
  full,
  /// The input of each layer is kept; the backward runs each layer's forward again right before
  /// that layer's backward, so that one layer's activations exist at a time. A backward that is
  /// split makes those of all layers again in I, as W needs them. Where only some layers of a stage
  /// are run again (LayerCosts::recomputation), the others keep all that they have.
  layers,
  /// Of each layer what costs little to make (LayerCosts::selective) is made again for its
  /// backward, as with `layers`; the rest is kept. B grows by that alone (Korthikanti et al. 2022,
  /// "Reducing Activation Recomputation in Large Transformer Models", section 5, "selective").
  selective,
};

/// Whether each layer makes its own activations again.
constexpr bool by_layer(Recompute recompute) {
  return recompute == Recompute::layers || recompute == Recompute::selective;
}

/// What a stage holds of a micro-batch where each layer makes its own activations again.
struct Checkpoints {
  Bytes kept;   ///< From F on: the inputs of its layers, made by its layers, or what a layer's
                ///< `selective` leaves.
  Bytes again;  ///< The most that one layer makes again: its activation without what is kept.

  /// A layer that keeps so much of its activation.
  void add(Bytes own, Bytes activation) {
    kept += own;
    again = std::max(again, activation - own);
  }
  /// A layer; `is_input` tells whether another one that the device holds consumes its output.
  void add(const LayerCosts& costs, bool is_input) {
    if (costs.recomputation == Recomputed::all)
      return add(is_input ? costs.output : Bytes{}, costs.activation);
    add(costs.activation - costs.selected(), costs.activation);
  }
};

}  // namespace plumbline
