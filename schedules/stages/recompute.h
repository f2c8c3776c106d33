// The parts of a forward that a backward recomputes, and the bytes kept for that.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "models/profile/profile.h"

namespace plumbline {

/// Recomputation, also called activation checkpointing (Chen et al. 2016, "Training Deep Nets with
/// Sublinear Memory Cost"). B (I where split) grows by the recomputed part of F.
enum class Recompute : std::uint8_t {
  none,  ///< All activations are kept.
  /// Only the input of a stage is kept; its backward first recomputes the whole forward.
  full,
  /// The input of each layer is kept. The backward recomputes each layer's forward right before
  /// that layer's backward, so that one layer's activations exist at a time. A split backward
  /// recomputes all layers in I, because W needs their activations. Where only some layers of a
  /// stage are recomputed (LayerCosts::recomputation), the others keep all activations.
  layers,
  /// The cheap part of each layer's activation (LayerCosts::selective) is recomputed for its
  /// backward, as with `layers`; the rest is kept. B grows by that part alone (Korthikanti et al.
  /// 2022, "Reducing Activation Recomputation in Large Transformer Models", section 5,
  /// "selective").
  selective,
};

/// The names of these, in the same order.
inline constexpr std::array<std::string_view, 4> kRecomputeNames = {"none", "full", "layers",
                                                                    "selective"};
constexpr std::string_view name(Recompute recompute) {
  return kRecomputeNames.at(static_cast<std::size_t>(recompute));
}

/// Whether each layer recomputes its own activations.
constexpr bool by_layer(Recompute recompute) {
  return recompute == Recompute::layers || recompute == Recompute::selective;
}

/// The bytes that a stage holds for a micro-batch where each layer recomputes its own activations.
struct Checkpoints {
  Bytes kept;   ///< Held from F on: the layers' inputs that its own layers make, or the rest of an
                ///< activation besides `selective`.
  Bytes again;  ///< The most that one layer recomputes: its activation without the kept part.

  /// Adds a layer that keeps `own` bytes of its activation.
  void add(Bytes own, Bytes activation) {
    kept += own;
    again = std::max(again, activation - own);
  }
  /// Adds a layer; `is_input` = another layer on the device consumes its output.
  void add(const LayerCosts& costs, bool is_input) {
    if (costs.recomputation == Recomputed::all)
      return add(is_input ? costs.output : Bytes{}, costs.activation);
    add(costs.activation - costs.selected(), costs.activation);
  }
};

}  // namespace plumbline
