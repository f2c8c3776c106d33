// Where the tensors of a stage's layers stand in its blocks of memory, on any kind of device.
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

/// Where a pass finds what layers keep.
enum class KeptIn : std::uint8_t {
  kept,  ///< All in one block, with the outputs between the layers.
  // Layers are run again by themselves: outputs stand in `checkpoints`, with what the other layers
  // keep; and in the place of `kept` is what those keep ...
  again,  ///< ... one at a time: of F and of a full backward, in which each is run again.
  recomputed_at_once,  ///< ... all of them: of I and W, in front of which they are run again.
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
    std::size_t number = 0;               ///< In the network.
    std::vector<std::size_t> parameters;  ///< Where each tensor begins; that of gradients too.
    std::size_t output = 0;               ///< In `kept`, but for the last layer.
    std::vector<std::size_t> kept;
    std::size_t checkpoint = 0;  ///< Its output again, in `checkpoints`, but for the last layer.
    /// What it keeps again, in `again` or `recomputed_at_once`; where it is not run again both are
    /// in `checkpoints`.
    std::vector<std::size_t> again;
    std::vector<std::size_t> recomputed_at_once;
    bool is_recomputed = true;  ///< Where layers are run again by themselves.

    /// What it keeps, in `checkpoints` where stands_with_checkpoints().
    const std::vector<std::size_t>& kept_in(KeptIn block) const {
      return block == KeptIn::kept ? kept : block == KeptIn::again ? again : recomputed_at_once;
    }
    bool stands_with_checkpoints(KeptIn block) const {
      return block != KeptIn::kept && !is_recomputed;
    }
    std::size_t gradient = 0;  ///< Of its input, in `left`: for a split backward.
    std::vector<std::size_t> left;
    std::size_t turn = 0;  ///< Of its input's gradient, in `scratch`: for a full backward.
    std::vector<std::size_t> scratch;
  };

  /// The network outlives it. `alignment` is a multiple of 4. Where layers are run again by
  /// themselves, it is the first `recomputed` of the stage.
  StageLayout(const Network& network, std::size_t first, std::size_t last, std::int64_t batch,
              std::size_t alignment, std::size_t recomputed = kAllLayers);

  std::size_t layers() const { return layers_.size(); }
  const OfLayer& operator[](std::size_t i) const { return layers_[i]; }

  std::size_t parameters() const { return parameters_; }
  std::size_t output() const { return output_; }
  std::size_t input() const { return input_; }  ///< 0 for ids.
  std::size_t kept() const { return kept_; }
  /// Where layers are run again by themselves, in the place of kept(): the inputs of its layers
  /// with all that the others keep; and what those run again keep, each in its turn or all at once.
  std::size_t checkpoints() const { return checkpoints_; }
  std::size_t again() const { return again_; }
  std::size_t recomputed_at_once() const { return recomputed_at_once_; }
  std::size_t left() const { return left_; }
  /// Of a full backward: in long stages less than left(), as gradients take turns.
  std::size_t scratch() const { return scratch_; }

  /// Where the parameters of layer i of the stage begin, and where those of the next one do.
  std::pair<std::size_t, std::size_t> parameters_of(std::size_t i) const;

  /// The layers' starting values as they stand in the block of parameters, zero between the
  /// tensors. The same network, layer and seed give the same values whatever the stages are.
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
