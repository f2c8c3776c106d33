// One stage of a network on one CUDA device: the kernels of its layers and the places of their
// tensors.
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

/// The alignment of every tensor, in bytes.
inline constexpr std::size_t kCudaAlignment = 256;

/// The tensors of one micro-batch in a stage; device pointers. Their sizes are in
/// CudaStage::layout().
struct CudaStageTensors {
  CUdeviceptr input = 0;   ///< Unused if the stage begins with an embedding.
  CUdeviceptr ids = 0;     ///< Used if it does.
  CUdeviceptr labels = 0;  ///< Used if it ends with a head.
  CUdeviceptr output = 0;  ///< The output of its last layer.
  CUdeviceptr kept = 0;    ///< Outputs of the other layers, and tensors kept for the backward.
  KeptIn kept_in = KeptIn::kept;  ///< The split between `kept` and `checkpoints`.
  CUdeviceptr checkpoints = 0;
  CUdeviceptr left = 0;  ///< Tensors from I for W; unused in a full backward.
  CUdeviceptr output_gradient = 0;
  CUdeviceptr input_gradient = 0;  ///< 0 = not wanted.
  CUdeviceptr parameters = 0;
  CUdeviceptr gradients = 0;  ///< Passes add to them.
};

/// Layers first..last of a network. Passes only enqueue, so they can be captured into a graph. They
/// share scratch, so they are on one stream.
class CudaStage {
 public:
  /// Requires: the queue's context is current, here and during the passes. Errors: CudaError.
  CudaStage(const CudaQueue& queue, const Network& network, std::size_t first, std::size_t last,
            std::int64_t batch, std::size_t recomputed = kAllLayers);

  /// The layout of such a stage, in steps of 256 bytes, as the device's allocator gives them.
  static StageLayout layout_of(const Network& network, std::size_t first, std::size_t last,
                               std::int64_t batch, std::size_t recomputed = kAllLayers);

  const StageLayout& layout() const { return layout_; }
  std::int64_t parameter_elements() const;
  /// The layers' initial values as the device holds them: the values of the CPU's stage, rounded.
  std::vector<std::byte> initial_parameters(std::uint64_t seed) const;

  /// Runs a pass of every layer in turn; backward passes begin at the last layer. A full backward
  /// is I and W of each layer. Where layers are recomputed one by one, the layer's F comes before
  /// them. Requires: no update.
  void measure_pass(const CudaQueue& queue, Pass pass, const CudaStageTensors& tensors);
  /// Runs the layers below `end` down to `begin` of a backward or W. An `end` beyond the last layer
  /// means all.
  void walk_down(const CudaQueue& queue, Pass pass, const CudaStageTensors& tensors,
                 std::size_t end, std::size_t begin);
  /// Runs the forward of the recomputed layers.
  void measure_again(const CudaQueue& queue, const CudaStageTensors& tensors);
  /// The layer at `place` in the order of a pass.
  std::size_t layer_at(Pass pass, std::size_t place) const {
    return pass == Pass::forward ? place : layers_.size() - 1 - place;
  }
  /// Runs the pass of one layer.
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
  CudaScratch scratch_;  ///< Scratch of a full backward.
  std::vector<Bound> layers_;
};

/// Numbers in the element type of a device's tensor.
std::vector<std::byte> as_elements(ElementType type, const float* values, std::size_t count);
/// The numbers of such elements.
std::vector<float> as_floats(ElementType type, const std::vector<std::byte>& elements);

/// Elements first..last-1 of a stage's parameters. Their optimizer state begins at element `state`.
struct CudaUpdate {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t state = 0;
};

/// The optimizer's state of one stage on one device, or of the share that this device updates.
class CudaOptimizer {
 public:
  /// Makes the state of `elements` elements. Errors: CudaError.
  CudaOptimizer(const CudaQueue& queue, OptimizerKind kind, ElementType type, std::int64_t elements,
                double rate);

  /// Counts a step. After it, update() is enqueued for all of the step's parameters.
  void step(const CudaQueue& queue);
  /// Applies the gradients to `before` and writes `after`, which may be the same memory. Pointers
  /// are to the stage's element 0.
  void update(const CudaQueue& queue, const CudaUpdate& what, CUdeviceptr gradients,
              CUdeviceptr before, CUdeviceptr after);

  /// The bytes of the state.
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
