// Data that the devices of a run share: tensors in transfer, gradients, losses, and weights.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "calibrate/cpu/backend.h"
#include "calibrate/cpu/buffer_pool.h"
#include "calibrate/cpu/optimizer.h"
#include "calibrate/runtime/run_plan.h"
#include "calibrate/training/training_data.h"

namespace plumbline {

/// Data that the devices of a run share.
class RunStore {
 public:
  RunStore(const RunPlan& plan, const CpuOptions& options);

  const Network& network() const { return *network_; }
  const RunPlan& plan() const { return plan_; }
  const CpuOptions& options() const { return options_; }
  const TrainingData& data() const { return data_; }
  std::int64_t batch() const { return batch_; }
  OptimizerKind optimizer() const { return optimizer_; }
  Recompute recompute() const { return recompute_; }

  std::uint32_t copy_of(std::uint32_t slot) const { return slot % copies_; }
  /// The micro-batch's number in the data set.
  std::uint32_t sample_of(std::uint32_t micro_batch, std::uint32_t copy) const {
    return micro_batch * copies_ + copy;
  }

  /// The places where a stage finds the tensors of its neighbours. They are written before the
  /// transfer starts, and read after it has arrived.
  SharedBuffer& input(std::uint32_t stage, std::uint32_t micro_batch, std::uint32_t copy) {
    return inputs_[place(stage, micro_batch, copy)];
  }
  SharedBuffer& output_gradient(std::uint32_t stage, std::uint32_t micro_batch,
                                std::uint32_t copy) {
    return output_gradients_[place(stage, micro_batch, copy)];
  }

  /// The number of micro-batches that one update of a stage covers.
  std::uint32_t round_length(std::uint32_t stage) const;
  /// Each sample's weight in the loss. With it the gradients of a round are those of its mean loss.
  float loss_weight(std::uint32_t stage) const;

  /// The buffer to which a device adds the gradients of a micro-batch. At the first micro-batch of
  /// a round there is none yet: `fresh`, which holds zeros or is null, becomes it.
  SharedBuffer gradients(std::uint32_t stage, std::uint32_t iteration, std::uint32_t micro_batch,
                         std::uint32_t slot, SharedBuffer fresh);

  /// The gradients of all devices of a stage in the round of an update, in the order of the
  /// devices. The call of the last device removes the round.
  std::vector<SharedBuffer> round_of(std::uint32_t stage, std::uint32_t iteration,
                                     std::uint32_t micro_batch);

  void add_losses(std::uint32_t iteration, const float* losses);

  /// The parameters that a device updates: with a sharded optimizer its share, else all. Shares
  /// begin at cache lines.
  ParameterRange updated_by(std::uint32_t stage, std::uint32_t slot, std::size_t floats) const;

  /// The weights that a device begins with, made by `make`. With a sharded optimizer, all devices
  /// of the stage use one piece of memory. Each writes its share of it while none reads. So each
  /// device has all weights, just as all devices have the tensors that are sent.
  template <class Make>
  SharedBuffer weights_of(std::uint32_t stage, Make&& make) {
    if (plan_.setup.rules.sharing.state == Sharded::nothing) return make();
    const std::lock_guard lock(mutex_);
    if (!common_weights_[stage]) common_weights_[stage] = make();
    return common_weights_[stage];
  }

  /// Stores the newest weights of a stage if the slot is the stage's first device.
  void tell_weights(std::uint32_t stage, std::uint32_t slot, const SharedBuffer& weights,
                    std::size_t floats);

  /// The results of the run. Does not use the plan, which may be gone after the run.
  CpuResults results();

 private:
  /// The gradients of one round of a stage, that is of one update: separate for each of its
  /// devices.
  struct Round {
    std::vector<SharedBuffer> of_member;
    std::size_t updated = 0;
  };

  std::size_t place(std::uint32_t stage, std::uint32_t micro_batch, std::uint32_t copy) const;
  std::size_t member(std::uint32_t stage, std::uint32_t slot) const;

  std::shared_ptr<const Network> network_;
  const RunPlan& plan_;
  CpuOptions options_;
  std::int64_t batch_;
  std::uint32_t copies_;
  std::uint32_t micro_batches_;  ///< Per mini-batch; 1 if asynchronous.
  UpdateRule updates_;
  OptimizerKind optimizer_;
  Recompute recompute_;
  TrainingData data_;
  std::vector<SharedBuffer> inputs_;
  std::vector<SharedBuffer> output_gradients_;
  /// One map per stage; its key is the iteration and the round.
  std::vector<std::map<std::pair<std::uint32_t, std::uint32_t>, Round>> rounds_;
  std::vector<std::mutex> round_mutexes_;
  std::mutex mutex_;  ///< Protects the members below.
  std::vector<std::pair<double, std::int64_t>> losses_;
  std::vector<std::pair<SharedBuffer, std::size_t>>
      first_weights_;                         ///< One per stage, with its size in floats.
  std::vector<SharedBuffer> common_weights_;  ///< One per stage.
};

}  // namespace plumbline
