// A stage of a run on one of its devices: micro-batches in flight, versions of weights, updates.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "calibrate/cpu/buffer_pool.h"
#include "calibrate/cpu/optimizer.h"
#include "calibrate/cpu/run_store.h"
#include "calibrate/cpu/stage.h"
#include "calibrate/runtime/backend.h"

namespace plumbline {

/// One stage on one device.
class StageOnDevice {
 public:
  StageOnDevice(RunStore& store, std::uint32_t stage, std::uint32_t slot);

  /// Runs an op of micro-batch `m`, or the update after it.
  void run(const Task& task, ActivityKind kind, std::uint32_t m);

 private:
  /// A micro-batch between its F and its last backward.
  struct InFlight {
    SharedBuffer input;
    SharedBuffer output;
    SharedBuffer kept;
    KeptIn kept_in = KeptIn::kept;
    SharedBuffer checkpoints;
    SharedBuffer left;
    SharedBuffer output_gradient;
    SharedBuffer input_gradient;  ///< Only while a backward computes it.
    std::size_t parts = 0;        ///< The buckets that the last backward, or W, has done.
    std::size_t layers = 0;       ///< The layers in those buckets.
  };

  /// Versions are counted from 0 in each iteration: the newest becomes version 0.
  void begin_iteration(std::uint32_t iteration);

  StageTensors tensors(const InFlight& one, const Task& task, std::uint32_t m) const;
  const float* weights(std::uint32_t version) const;

  void forward(const Task& task, std::uint32_t m);

  /// Runs the forward of the whole stage again, and keeps its activations.
  void recompute(InFlight& one, const Task& task, std::uint32_t m);

  /// The tensors of a backward. Recomputes the activations that the forward did not keep. If the
  /// layers are recomputed one by one, a whole backward recomputes them itself.
  StageTensors backward_tensors(const Task& task, std::uint32_t m, bool whole);

  /// A buffer for the gradient that the stage below gets; null in the first stage.
  SharedBuffer input_gradient() const;

  void hand_down(SharedBuffer gradient, std::uint32_t m);

  SharedBuffer gradients(const Task& task, std::uint32_t m);

  /// Prepares a buffer of zeros for the gradients of the next round. Every update makes sure that
  /// there is one.
  void clear_gradients();

  /// The layers of the next part of a backward, as {end, begin}; a backward runs from the last
  /// layer down. They are those of the next bucket, or in the last part all layers that are left.
  /// Counts those of a bucket as done.
  std::pair<std::size_t, std::size_t> next_layers(InFlight& one, bool is_last_part) const;

  void backward(const Task& task, std::uint32_t m, bool is_last_part);
  void backward_input(const Task& task, std::uint32_t m);
  void backward_weight(const Task& task, std::uint32_t m, bool is_last_part);
  void update(const Task& task, std::uint32_t m);

  RunStore& store_;
  std::uint32_t stage_;
  std::uint32_t slot_;
  std::uint32_t copy_;
  bool is_first_;
  bool is_last_;
  const std::vector<LayerId>& layers_;
  bool recomputes_;
  bool recomputes_output_;
  CpuStage kernels_;
  std::shared_ptr<BufferPool> parameters_;
  std::shared_ptr<BufferPool> outputs_;
  std::shared_ptr<BufferPool> inputs_;
  std::shared_ptr<BufferPool> kept_;
  std::shared_ptr<BufferPool> left_;
  std::shared_ptr<BufferPool> checkpoints_;
  std::shared_ptr<BufferPool> again_;
  std::shared_ptr<BufferPool> recomputed_at_once_;
  Buffer scratch_;
  std::vector<InFlight> in_flight_;
  std::map<std::uint32_t, SharedBuffer> weights_;  ///< By version.
  std::vector<float> loss_weights_;
  Optimizer optimizer_;
  SharedBuffer fresh_gradients_;  ///< Zeros, for the next round; null while there are none.
  std::uint32_t iteration_ = 0;
};

}  // namespace plumbline
