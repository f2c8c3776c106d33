// The data of a run on CUDA devices: tensors, gradients, versions of weights, samples, losses.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "calibrate/cuda/driver/devices.h"
#include "calibrate/cuda/layers/stage.h"
#include "calibrate/cuda/libraries/device_libraries.h"
#include "calibrate/cuda/libraries/nccl.h"
#include "calibrate/cuda/program/program.h"
#include "calibrate/cuda/program/work.h"
#include "calibrate/training/training_data.h"
#include "models/profile/optimizer_kind.h"
#include "schedules/order/weight_versions.h"

namespace plumbline {

/// How a network is trained.
struct CudaTraining {
  const Network* network = nullptr;  ///< Null: nothing is trained.
  std::int64_t batch = 1;            ///< Samples per micro-batch.
  OptimizerKind optimizer = OptimizerKind::gradient_descent;
  double learning_rate = 0.01;
  std::uint64_t seed = 1;
  Recompute recompute = Recompute::none;
  UpdateRule updates;
  bool keeps_links = true;  ///< Copies take at least the plan's time; else only their own.
};

/// The bytes of each stage of the plan on a device; token sizes without a network.
std::vector<StageBytes> stage_bytes(const RunPlan& plan, const CudaTraining& training);

/// All data that the steps of a program read and write. It is allocated before the first iteration,
/// and nothing after. Events are not its concern.
class CudaTrainer : public CudaWork {
 public:
  /// The arguments outlive it.
  CudaTrainer(CudaDevices& devices, DeviceLibraries& libraries, const CudaTraining& training,
              const RunPlan& plan, const CudaProgram& program);
  ~CudaTrainer() override;
  CudaTrainer(const CudaTrainer&) = delete;
  CudaTrainer& operator=(const CudaTrainer&) = delete;

  void prepare(std::uint32_t slot) override;
  void enqueue(const CudaStep& step, CUstream stream) override;
  void enqueue_together(std::span<const CudaStep> steps,
                        const std::vector<CUstream>& streams) override;
  void end_iteration() override;
  std::uint32_t phase() const override { return phase_; }
  void bring_losses(std::uint32_t slot) override;
  std::optional<double> mean_loss() const override;
  std::vector<float> parameters(std::uint32_t stage) override;
  std::optional<std::size_t> allocated(std::uint32_t slot) const override;

 private:
  struct OnSlot {
    std::unique_ptr<CudaStage> stage;
    std::unique_ptr<CudaOptimizer> optimizer;
    std::vector<CudaScratch> weights;
    std::vector<std::uint32_t> pieces;  ///< Index into `weights` of each numbered piece.
    CudaScratch samples;                ///< Inputs or ids, for stage 0.
    CudaScratch labels;                 ///< For the last stage, as the next two.
    CudaScratch loss_weights;
    CudaScratch losses;
    std::vector<float> host_losses;
  };

  CudaQueue on_compute(std::uint32_t slot) const;
  CUdeviceptr block(std::uint32_t number) const {
    return number == kNone32 ? 0 : blocks_[number].data();
  }
  CUdeviceptr weights(std::uint32_t on, std::uint32_t number) const {
    return on_[on].weights[on_[on].pieces[number]].data();
  }
  CUdeviceptr piece(const CudaPiece& piece) const {
    return piece.at + (piece.on == kNone32 ? block(piece.block) : weights(piece.on, piece.weights));
  }
  std::uint32_t slot_of(const CudaPiece& piece) const {
    return piece.on == kNone32 ? program_.blocks[piece.block].slot : program_.stages[piece.on].slot;
  }
  CudaScratch uploaded(std::uint32_t slot, const void* data, std::size_t bytes);
  void prepare_stage(std::uint32_t on);
  void prepare_communicators();
  bool is_alternating() const;
  void enqueue_pass(const CudaStep& step);
  void enqueue_update(const CudaStep& step);
  void enqueue_copy(const CudaStep& step, CUstream stream);
  void enqueue_sum(const CudaStep& step, CUstream stream);

  CudaDevices& devices_;
  DeviceLibraries& libraries_;
  const CudaTraining training_;
  const RunPlan& plan_;
  const CudaProgram& program_;
  TrainingData data_;
  std::uint32_t phase_ = 0;
  std::size_t sample_bytes_ = 0;   ///< Bytes of one micro-batch.
  std::size_t sample_stride_ = 0;  ///< Bytes from one to the next: all are aligned alike.
  std::size_t label_bytes_ = 0;
  std::vector<OnSlot> on_;                       ///< Parallel to CudaProgram::stages.
  std::vector<CudaScratch> blocks_;              ///< Parallel to CudaProgram::blocks.
  std::vector<NcclCommunicator> communicators_;  ///< Parallel to CudaProgram::communicators.
  /// The places of the losses: the entry of on_ and the micro-batch.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> made_losses_;
};

}  // namespace plumbline
