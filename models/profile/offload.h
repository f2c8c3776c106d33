// A share of the activations in the host's memory, between a layer's forward and its backward.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include "base/units.h"
#include "models/profile/profile.h"

namespace plumbline {

/// The effects of offloading on the costs of one batch.
struct OffloadedLayers {
  std::size_t layers = 0;  ///< Those with activations that are offloaded.
  Bytes bytes;             ///< Of all of them.
  std::size_t longer_forwards = 0, longer_backwards = 0;
  std::size_t longer_inputs = 0;            ///< First parts of backwards that a schedule splits.
  Duration forward{}, backward{}, input{};  ///< The time that these take longer, in all.
};

/// Offloads `share` of what each layer keeps, but what selective recomputation makes again, over a
/// link to the host of `bandwidth` each way. It is copied to the host beside the forward, and back
/// beside the backward, so that these take at least as long as the copy; where a backward is split,
/// beside its first part. What a backward makes again comes on top. Between them the device does
/// not hold it, but has room for that of two layers. Of a transformer only the blocks offload: what
/// others do, Transformer Engine's CPU offloading among them. Returns the effect on the first
/// measurement. Requires: 0 <= share <= 1; no layer waits for an estimate; bandwidth > 0.
OffloadedLayers offload_activations(Profile& profile, double share, BytesPerSecond bandwidth);

}  // namespace plumbline
