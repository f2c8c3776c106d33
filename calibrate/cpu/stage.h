// One stage of a network on one CPU core: the kernels of its layers, and the places of their
// tensors.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "calibrate/cpu/layer.h"
#include "calibrate/runtime/clock.h"
#include "calibrate/training/stage_layout.h"
#include "models/network/network.h"

namespace plumbline {

/// The tensors of one micro-batch on its way through a stage. CpuStage gives the sizes.
struct StageTensors {
  const float* input = nullptr;          ///< Null where the stage begins with an embedding.
  const std::int32_t* ids = nullptr;     ///< Only where it does.
  const std::int32_t* labels = nullptr;  ///< Only where it ends with a head.
  float* output = nullptr;               ///< The last layer's output.
  float* kept = nullptr;  ///< Outputs of the other layers, and tensors kept for the backward.
  KeptIn kept_in = KeptIn::kept;  ///< The use of `kept` and `checkpoints`.
  float* checkpoints = nullptr;
  float* left = nullptr;  ///< Tensors that I leaves for W; scratch of a full backward.
  const float* output_gradient = nullptr;
  float* input_gradient = nullptr;  ///< Null = not wanted.
  const float* parameters = nullptr;
  float* gradients = nullptr;  ///< Passes add to them.
};

/// The begin of each layer of a stage in one pass; the last entry is the end of the pass. So
/// differences add up to the whole pass.
using Stamps = std::vector<RealTime>;

/// Layers first..last of a network. One thread at a time uses it.
class CpuStage {
 public:
  CpuStage(const Network& network, std::size_t first, std::size_t last, std::int64_t batch,
           std::size_t recomputed = kAllLayers);

  // Sizes in floats.
  std::size_t parameter_floats() const { return layout_.parameters() / sizeof(float); }
  std::size_t output_floats() const { return layout_.output() / sizeof(float); }
  std::size_t input_floats() const { return layout_.input() / sizeof(float); }  ///< 0 for ids.
  std::size_t kept_floats() const { return layout_.kept() / sizeof(float); }
  /// Sizes that replace kept_floats() where layers are recomputed one by one.
  std::size_t checkpoint_floats() const { return layout_.checkpoints() / sizeof(float); }
  std::size_t recomputed_floats() const { return layout_.again() / sizeof(float); }
  std::size_t recomputed_at_once_floats() const {
    return layout_.recomputed_at_once() / sizeof(float);
  }
  std::size_t left_floats() const { return layout_.left() / sizeof(float); }
  /// Scratch of a full backward: in long stages less than left_floats(), as gradients take turns.
  std::size_t scratch_floats() const { return layout_.scratch() / sizeof(float); }

  /// The offsets of the parameters of layer i of the stage, and of the next layer.
  std::pair<std::size_t, std::size_t> parameters_of(std::size_t i) const;

  std::size_t layers() const { return layers_.size(); }
  const NetworkLayer& layer(std::size_t i) const { return *layout_[i].layer; }

  /// Fills `parameters` with the layers' starting values. The same network, layer and seed give the
  /// same values whatever the stages are.
  void initialise(float* parameters, std::uint64_t seed) const;

  void forward(const StageTensors& tensors, Stamps* stamps = nullptr);
  /// The forward of the layers that are recomputed one by one.
  void recomputed_forward(const StageTensors& tensors);
  /// I and W of each layer in turn, the last layer first. A layer that is recomputed runs its F
  /// before them.
  void backward(const StageTensors& tensors, Stamps* stamps = nullptr) {
    backward(tensors, layers(), 0, stamps);
  }
  /// The same of some layers: those below `end`, down to `begin`.
  void backward(const StageTensors& tensors, std::size_t end, std::size_t begin,
                Stamps* stamps = nullptr);
  void backward_input(const StageTensors& tensors, Stamps* stamps = nullptr);
  void backward_weight(const StageTensors& tensors, Stamps* stamps = nullptr) {
    backward_weight(tensors, layers(), 0, stamps);
  }
  void backward_weight(const StageTensors& tensors, std::size_t end, std::size_t begin,
                       Stamps* stamps = nullptr);

 private:
  struct Bound {
    std::unique_ptr<CpuLayer> kernels;
    CpuCall call;
  };

  void bind(const StageTensors& tensors, std::size_t i);
  /// Sets the call's gradients and left tensors.
  void bind_backward(const StageTensors& tensors, std::size_t i, bool split);

  StageLayout layout_;
  std::vector<Bound> layers_;
};

}  // namespace plumbline
