// The layout of a stage's tensors in its blocks of memory, on any kind of device.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "models/network/network.h"

namespace plumbline {

/// The place where a pass finds the tensors that layers keep.
enum class KeptIn : std::uint8_t {
  kept,  ///< All in one block, with the outputs between the layers.
  // Layers are recomputed one by one. Outputs are in `checkpoints`, with what the other layers
  // keep. In the place of `kept` is what the recomputed layers keep ...
  again,  ///< ... one layer at a time: for F, and for a full backward, which recomputes each.
  recomputed_at_once,  ///< ... all layers: for I and W, which come after the recompute.
};

inline constexpr std::size_t kAllLayers = std::numeric_limits<std::size_t>::max();

/// The first and the last layer of each stage.
using StageLayers = std::vector<std::pair<std::size_t, std::size_t>>;

/// Layers first..last of a network for micro-batches of one size. Each block (parameters and their
/// gradients; kept; checkpoints; again; left; scratch) is one piece of memory; offsets and sizes
/// are in bytes, tensors begin at multiples of the alignment. It allocates nothing.
class StageLayout {
 public:
  struct OfLayer {
    const NetworkLayer* layer = nullptr;
    std::size_t number = 0;               ///< The layer's index in the network.
    std::vector<std::size_t> parameters;  ///< Offset of each tensor, and of its gradient.
    std::size_t output = 0;               ///< In `kept`, but for the last layer.
    std::vector<std::size_t> kept;
    std::size_t checkpoint = 0;  ///< The output's offset in `checkpoints`, but for the last layer.
    /// Offsets of its kept tensors in `again` or `recomputed_at_once`; in `checkpoints` if it is
    /// not recomputed.
    std::vector<std::size_t> again;
    std::vector<std::size_t> recomputed_at_once;
    bool is_recomputed = true;  ///< Where layers are recomputed one by one.

    /// Offsets of its kept tensors; in `checkpoints` where stands_with_checkpoints().
    const std::vector<std::size_t>& kept_in(KeptIn block) const {
      return block == KeptIn::kept ? kept : block == KeptIn::again ? again : recomputed_at_once;
    }
    bool stands_with_checkpoints(KeptIn block) const {
      return block != KeptIn::kept && !is_recomputed;
    }
    std::size_t gradient = 0;  ///< Input gradient's offset in `left`, for a split backward.
    std::vector<std::size_t> left;
    std::size_t turn = 0;  ///< Input gradient's offset in `scratch`, for a full backward.
    std::vector<std::size_t> scratch;
  };

  /// The network outlives it. `alignment` is a multiple of 4. Where layers are recomputed one by
  /// one, those are the first `recomputed` of the stage.
  StageLayout(const Network& network, std::size_t first, std::size_t last, std::int64_t batch,
              std::size_t alignment, std::size_t recomputed = kAllLayers);

  std::size_t layers() const { return layers_.size(); }
  const OfLayer& operator[](std::size_t i) const { return layers_[i]; }

  std::size_t parameters() const { return parameters_; }
  std::size_t output() const { return output_; }
  std::size_t input() const { return input_; }  ///< 0 for ids.
  std::size_t kept() const { return kept_; }
  /// Blocks in the place of kept() where layers are recomputed one by one. The first has the inputs
  /// of the layers and all that the others keep. The next two have what the recomputed layers keep,
  /// one layer at a time or all at once.
  std::size_t checkpoints() const { return checkpoints_; }
  std::size_t again() const { return again_; }
  std::size_t recomputed_at_once() const { return recomputed_at_once_; }
  std::size_t left() const { return left_; }
  /// Scratch of a full backward. In long stages it is less than left(), as gradients take turns.
  std::size_t scratch() const { return scratch_; }

  /// The offsets of the parameters of layer i of the stage, and of the next layer.
  std::pair<std::size_t, std::size_t> parameters_of(std::size_t i) const;

  /// The layers' starting values as laid out in the block of parameters, zero between the tensors.
  /// The same network, layer and seed give the same values whatever the stages are.
  std::vector<float> initial_values(std::uint64_t seed) const;

 private:
  std::vector<OfLayer> layers_;
  std::size_t element_ = 4;
  std::size_t parameters_ = 0;
  std::size_t output_ = 0;
  std::size_t input_ = 0;
  std::size_t kept_ = 0;
  std::size_t checkpoints_ = 0;
  std::size_t again_ = 0;
  std::size_t recomputed_at_once_ = 0;
  std::size_t left_ = 0;
  std::size_t scratch_ = 0;
};

}  // namespace plumbline
