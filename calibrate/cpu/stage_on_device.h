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

  /// Runs an op of micro-batch `m`, or an update behind it.
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
    SharedBuffer input_gradient;  ///< While a backward makes it.
    std::size_t parts = 0;   ///< Of the last backward, or of W, so many buckets are done, of which
    std::size_t layers = 0;  ///< each had some layers.
  };

  /// Versions are counted anew in each iteration: the newest becomes 0.
  void begin_iteration(std::uint32_t iteration);

  StageTensors tensors(const InFlight& one, const Task& task, std::uint32_t m) const;
  const float* weights(std::uint32_t version) const;

  void forward(const Task& task, std::uint32_t m);

  /// The tensors of a backward, what the forward kept made again where it was not kept. Where
  /// layers are run again by themselves, a whole backward does that.
  StageTensors backward_tensors(const Task& task, std::uint32_t m, bool whole);

  /// Makes room for the gradient that the stage below gets.
  SharedBuffer input_gradient() const;

  void hand_down(SharedBuffer gradient, std::uint32_t m);

  SharedBuffer gradients(const Task& task, std::uint32_t m);

  /// Makes ready where the next round is added up. It is a part of every update.
  void clear_gradients();

  /// The layers that a part of a backward is over, from the last one down: those of the next
  /// bucket, and of the last part all that are left. Counts them as done.
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
  SharedBuffer fresh_gradients_;  ///< Zero, for the next round; nothing while none is ready.
  std::uint32_t iteration_ = 0;
};

}  // namespace plumbline
