// The training state that the devices of a stage share, and when they exchange it.
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
  /// Every forward and backward all-gathers its weights, bucket by bucket, and then frees them
  /// (FSDP; Zhao et al. 2023, "PyTorch FSDP").
  weights,
};

/// When shared gradients are reduced.
enum class Reduction : std::uint8_t {
  each_backward,
  /// Each backward reduces them within its group of copies; the last one also across groups.
  in_groups_each_backward,
  with_last_backward,    ///< Of each bucket as soon as the mini-batch's last backward has made it.
  behind_last_backward,  ///< Of all buckets when the last backward has ended.
};

/// What is shared, by how many copies, and when gradients are reduced and weights freed.
struct Sharing {
  Sharded state = Sharded::nothing;
  /// So many copies share, one behind the other; 0: all. Each such group holds everything. The
  /// groups all-reduce the gradients that each of them has reduce-scattered. (Hybrid sharding:
  /// HSDP of PyTorch, MiCS.)
  std::uint32_t degree = 0;
  /// Unless each backward reduces them, shared gradients are held whole.
  Reduction reduction = Reduction::each_backward;
  /// Shared weights are freed behind each forward, and behind each backward. Otherwise they stay
  /// until the other kind of pass, or the end of the mini-batch, frees them.
  bool frees_after_forward = true;
  bool frees_after_backward = true;
  /// The gather of a bucket's weights begins so many buckets ahead; 0: when they are needed.
  std::uint32_t prefetch = 1;

  bool shares() const { return state != Sharded::nothing; }
  bool reduces_once() const { return reduction >= Reduction::with_last_backward; }
  bool reduces_each_backward() const { return state >= Sharded::gradients && !reduces_once(); }
  /// Whether weights are gathered more than once a mini-batch.
  bool gathers_passes() const {
    return state == Sharded::weights && (frees_after_forward || frees_after_backward);
  }
  /// Whether a device holds no more of the weights than its share, and the buckets around the one
  /// that it computes with.
  bool holds_share_of_weights() const {
    return state == Sharded::weights && frees_after_forward && frees_after_backward;
  }
  /// The devices among which the state of a stage is shared out, of `members` that hold it.
  std::uint32_t sharers(std::uint32_t members) const {
    if (!shares()) return 1;
    return degree == 0 ? members : degree;
  }

  friend bool operator==(const Sharing&, const Sharing&) = default;
};

}  // namespace plumbline
