// What of a forward is computed again for the backward, and what is kept for that.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>

#include "models/profile.h"

namespace plumbline {

/// Recomputation, also called activation checkpointing (Chen et al. 2016, "Training Deep Nets with
/// Sublinear Memory Cost"). Whatever is computed again, B (I where split) grows by F.
enum class Recompute : std::uint8_t {
  none,  ///< All activations are kept.
  /// Only the input of a stage is kept; its backward runs the whole forward again first.
  full,
  /// The input of each layer is kept; the backward runs each layer's forward again right before
  /// that layer's backward, so that one layer's activations exist at a time. A backward that is
  /// split makes those of all layers again in I, as W needs them.
  layers,
};

/// What a stage holds of a micro-batch under Recompute::layers.
struct Checkpoints {
  Bytes inputs;  ///< Of its layers, made by its layers: kept from F on.
  Bytes again;   ///< The most that one layer makes again: its activation without what is kept.

  /// A layer; `is_input` tells whether another one that the device holds consumes its output.
  void add(Bytes output, Bytes activation, bool is_input) {
    const Bytes kept = is_input ? output : Bytes{};
    inputs += kept;
    again = std::max(again, activation - kept);
  }
};

}  // namespace plumbline
