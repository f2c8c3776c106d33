// The training state that the devices of a stage share.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace plumbline {

/// The stages of ZeRO (Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training
/// Trillion Parameter Models", section 5). Replicas and copies of a stage would each hold this
/// state whole; with sharding each holds its share. Every value also shares the state of the values
/// before it.
enum class Sharded : std::uint8_t {
  nothing,
  /// Gradients are reduce-scattered before an update, each device updates its share, and the new
  /// weights are all-gathered.
  optimizer,
  /// Every backward reduce-scatters its own gradients, bucket by bucket. At most two buckets of
  /// gradients are whole at a time.
  gradients,
  /// Every forward and backward all-gathers its weights, bucket by bucket, and then frees them. At
  /// most two buckets are whole at a time (FSDP; Zhao et al. 2023, "PyTorch FSDP").
  weights,
};

}  // namespace plumbline
