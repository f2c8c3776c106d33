// What the devices that hold a stage share.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace plumbline {

/// The stages of ZeRO (Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training
/// Trillion Parameter Models", section 5): of what replicas and copies of a stage would each hold
/// whole, each holds its share. Every one shares what those before it do.
enum class Sharded : std::uint8_t {
  nothing,
  /// Gradients are reduce-scattered before an update, each device updates its share, and the new
  /// weights are all-gathered.
  optimizer,
  /// Every backward reduce-scatters its own, bucket by bucket: no more than two buckets of
  /// gradients are whole at a time.
  gradients,
  /// Every forward and backward gathers the weights that it needs, bucket by bucket, and lets go of
  /// them: no more than two buckets are whole at a time (FSDP; Zhao et al. 2023, "PyTorch FSDP").
  weights,
};

}  // namespace plumbline
