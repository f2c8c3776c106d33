// One stage of a network on one CUDA device: the kernels of its layers, and where their tensors
// stand.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "calibrate/cuda/driver/queue.h"
#include "calibrate/cuda/driver/scratch.h"
#include "calibrate/cuda/layers/layer.h"
#include "calibrate/measure/pass_samples.h"
#include "calibrate/training/stage_layout.h"
#include "models/network/network.h"
#include "models/profile/optimizer_kind.h"

namespace plumbline {

/// Of every tensor, in bytes.
inline constexpr std::size_t kCudaAlignment = 256;

/// The tensors of one micro-batch on its way through a stage; pointers of the device. Sizes are
/// told by CudaStage::layout().
struct CudaStageTensors {
  CUdeviceptr input = 0;   ///< Not where the stage begins with an embedding.
  CUdeviceptr ids = 0;     ///< Where it does.
  CUdeviceptr labels = 0;  ///< Where it ends with a head.
  CUdeviceptr output = 0;  ///< Of its last layer.
  CUdeviceptr kept = 0;    ///< The outputs of the other layers, and what all keep for the backward.
  KeptIn kept_in = KeptIn::kept;  ///< What stands in `kept`, and what in `checkpoints`.
  CUdeviceptr checkpoints = 0;
  CUdeviceptr left = 0;  ///< What I leaves for W; not for a full backward.
  CUdeviceptr output_gradient = 0;
  CUdeviceptr input_gradient = 0;  ///< 0 = not wanted.
  CUdeviceptr parameters = 0;
  CUdeviceptr gradients = 0;  ///< Added to.
};

/// Layers first..last of a network. Passes only enqueue, so they can be captured into a graph; they
/// share scratch, so they stand on one stream.
class CudaStage {
 public:
  /// Requires: the queue's context is current, here and in the passes. Errors: CudaError.
  CudaStage(const CudaQueue& queue, const Network& network, std::size_t first, std::size_t last,
            std::int64_t batch, std::size_t recomputed = kAllLayers);

  /// In steps of 256 bytes, as the device's allocator gives them.
  static StageLayout layout_of(const Network& network, std::size_t first, std::size_t last,
                               std::int64_t batch, std::size_t recomputed = kAllLayers);

  const StageLayout& layout() const { return layout_; }
  std::int64_t parameter_elements() const;
  /// The layers' starting values as the device holds them: those of the CPU's stage, rounded.
  std::vector<std::byte> initial_parameters(std::uint64_t seed) const;

  /// Every layer in turn; backwards begin at the last one, and a full one is I and W of each, by
  /// layer its F again before them, where it is run again. Requires: no update.
  void measure_pass(const CudaQueue& queue, Pass pass, const CudaStageTensors& tensors);
  /// Of a backward or W the layers below `end`, of all that there are, down to `begin`.
  void walk_down(const CudaQueue& queue, Pass pass, const CudaStageTensors& tensors,
                 std::size_t end, std::size_t begin);
  /// The forward of the layers that are run again by themselves.
  void measure_again(const CudaQueue& queue, const CudaStageTensors& tensors);
  /// The layer that comes at `place` in a pass.
  std::size_t layer_at(Pass pass, std::size_t place) const {
    return pass == Pass::forward ? place : layers_.size() - 1 - place;
  }
  /// That layer alone.
  void measure_layer(const CudaQueue& queue, Pass pass, const CudaStageTensors& tensors,
                     std::size_t layer);

 private:
  struct Bound {
    std::unique_ptr<CudaLayer> kernels;
    CudaCall call;
  };

  void bind(const CudaStageTensors& tensors, std::size_t i);
  /// Sets the call's gradients and left tensors.
  void bind_backward(const CudaStageTensors& tensors, std::size_t i, bool split);

  ElementType type_;
  StageLayout layout_;
  CudaScratch scratch_;  ///< Of a full backward.
  std::vector<Bound> layers_;
};

/// Numbers as a tensor of the device holds them.
std::vector<std::byte> as_elements(ElementType type, const float* values, std::size_t count);
/// And back.
std::vector<float> as_floats(ElementType type, const std::vector<std::byte>& elements);

/// Elements first..last-1 of a stage's parameters, whose state an optimizer keeps from its element
/// number `state` on.
struct CudaUpdate {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t state = 0;
};

/// The optimizer's state of one stage on one device, or of the share that it updates.
class CudaOptimizer {
 public:
  /// Of so many elements. Errors: CudaError.
  CudaOptimizer(const CudaQueue& queue, OptimizerKind kind, ElementType type, std::int64_t elements,
                double rate);

  /// Counts a step; update() is enqueued for all of its parameters after it.
  void step(const CudaQueue& queue);
  /// The gradients are applied to `before`; `after` may be the same memory. Pointers are those of
  /// the stage's element 0.
  void update(const CudaQueue& queue, const CudaUpdate& what, CUdeviceptr gradients,
              CUdeviceptr before, CUdeviceptr after);

  /// Bytes of its state.
  std::size_t bytes() const;

 private:
  OptimizerKind kind_;
  ElementType type_;
  std::int64_t elements_;
  double rate_;
  CudaScratch first_moment_;
  CudaScratch second_moment_;
  CudaScratch steps_;
};

}  // namespace plumbline
