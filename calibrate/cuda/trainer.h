// The data of a run on CUDA devices: tensors, gradients, versions of weights, samples, losses.
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "calibrate/cuda/device_products.h"
#include "calibrate/cuda/devices.h"
#include "calibrate/cuda/program.h"
#include "calibrate/cuda/stage.h"
#include "calibrate/training_data.h"
#include "models/optimizer_kind.h"
#include "schedules/weight_versions.h"

namespace plumbline {

/// How a network is trained.
struct CudaTraining {
  const Network* network = nullptr;
  std::int64_t batch = 1;  ///< Samples of a micro-batch.
  OptimizerKind optimizer = OptimizerKind::gradient_descent;
  double learning_rate = 0.01;
  std::uint64_t seed = 1;
  bool recompute = false;
  UpdateRule updates;
};

/// Where a device's work is enqueued; `products` are its own.
CudaQueue queue_of(const CudaDriver& driver, const CudaDevice& device, CudaProducts& products,
                   CUstream stream);

/// What each stage of the plan takes on a device.
std::vector<StageBytes> stage_bytes(const RunPlan& plan, const CudaTraining& training);

/// Everything that the steps of a program read and write. It is allocated before the first
/// iteration; then nothing is. It knows no events.
class CudaTrainer {
 public:
  /// What is passed outlives it.
  CudaTrainer(CudaDevices& devices, DeviceProducts& products, const CudaTraining& training,
              const RunPlan& plan, const CudaProgram& program);
  ~CudaTrainer();
  CudaTrainer(const CudaTrainer&) = delete;
  CudaTrainer& operator=(const CudaTrainer&) = delete;

  /// Allocates and fills what stands on a slot. Requires: its context is current, here and below.
  /// Errors: CudaError.
  void prepare(std::uint32_t slot);

  /// Enqueues the step on its stream, without its waits. Errors: CudaError.
  void enqueue(const CudaStep& step);

  /// The next iteration begins with the weights that this one has made.
  void end_iteration();

  /// Where the losses of an iteration are, on the slots of the last stage; host memory.
  void bring_losses(std::uint32_t slot);  ///< Enqueued on the compute stream.
  /// The mean over all samples. Requires: what bring_losses enqueued has ended.
  double mean_loss() const;

  /// The newest weights of a stage, of its first device. Waits for them.
  std::vector<float> parameters(std::uint32_t stage);
  /// What was allocated for the tensors that the books count: weights, gradients, optimizer state,
  /// activations, buffers.
  std::size_t allocated(std::uint32_t slot) const;

 private:
  struct OnSlot {
    std::unique_ptr<CudaStage> stage;
    std::unique_ptr<CudaOptimizer> optimizer;
    std::vector<CudaScratch> weights;
    std::vector<std::uint32_t> pieces;  ///< Where each numbered piece of weights is, in `weights`.
    CudaScratch samples;                ///< Inputs or ids, of stage 0.
    CudaScratch labels;                 ///< Of the last stage, as the next two.
    CudaScratch loss_weights;
    CudaScratch losses;
    std::vector<float> host_losses;
  };

  CudaQueue queue(std::uint32_t slot, bool sends) const;
  CUdeviceptr block(std::uint32_t number) const {
    return number == kNone32 ? 0 : blocks_[number].data();
  }
  CudaScratch uploaded(std::uint32_t slot, const void* data, std::size_t bytes);
  void prepare_stage(std::uint32_t on);
  void enqueue_pass(const CudaStep& step);
  void enqueue_update(const CudaStep& step);
  void enqueue_copy(const CudaStep& step);

  CudaDevices& devices_;
  DeviceProducts& products_;
  const CudaTraining training_;
  const RunPlan& plan_;
  const CudaProgram& program_;
  TrainingData data_;
  std::size_t sample_bytes_ = 0;   ///< Of a micro-batch.
  std::size_t sample_stride_ = 0;  ///< From one to the next: all are aligned alike.
  std::size_t label_bytes_ = 0;
  std::vector<OnSlot> on_;           ///< Parallel to CudaProgram::stages.
  std::vector<CudaScratch> blocks_;  ///< Parallel to CudaProgram::blocks.
  /// Where each micro-batch's loss is made: the entry of on_ and the micro-batch.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> made_losses_;
};

}  // namespace plumbline
