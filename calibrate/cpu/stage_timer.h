// One core that walks a stage of a network again and again, every layer timed.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "calibrate/cpu/buffer.h"
#include "calibrate/cpu/optimizer.h"
#include "calibrate/cpu/stage.h"
#include "calibrate/measure/pass_samples.h"
#include "calibrate/measure/round_robin.h"
#include "calibrate/runtime/clock.h"
#include "calibrate/training/training_data.h"
#include "models/network/network.h"

namespace plumbline {

/// The part of the network that one walker times.
struct TimerTask {
  std::size_t first = 0;  ///< The layers first..last.
  std::size_t last = 0;
  std::int64_t batch = 1;
  std::uint32_t device = 0;
  std::uint32_t devices = 1;
  OptimizerKind optimizer = OptimizerKind::gradient_descent;
  std::uint64_t seed = 1;
};

/// The state that the walkers of one walk share.
struct Measuring {
  RoundRobin turns;                    ///< One for each pass.
  std::atomic<RealTime> measuring{0};  ///< The time from which passes count; 0 = not yet.
  std::atomic<bool> stop{false};
};

/// A walker: forward and backward in turn as in a steady pipeline, over as many buffers as
/// micro-batches are in flight. Every fourth backward is I and then W. An update follows every
/// eighth forward. Each walk continues with the weights and buffers of the last one.
class StageTimer {
 public:
  StageTimer(const Network& network, const TimerTask& task);

  /// Called before each walk. `in_flight` is at most one more than there are devices. Passes will
  /// be added to `samples`. `before` is the time measured earlier.
  void start(std::uint32_t in_flight, Duration before, StageSamples& samples);
  /// Walks until the walk is stopped.
  void measure_pass(Measuring& with);

  // These may be called at any time.

  /// Whether no more passes are needed.
  bool is_done() const { return is_done_.load(std::memory_order_relaxed); }
  /// The turns of the last walk that counted.
  std::size_t turns() const { return turns_.load(std::memory_order_relaxed); }

  /// The passes that the last walk added to the samples. Requires: nobody walks.
  const std::vector<PassTimes>& was_measured() const { return was_measured_; }

 private:
  struct Slot {
    Buffer input, output, kept, left, output_gradient, input_gradient;
  };

  StageTensors tensors(std::size_t slot);
  void update(Stamps* stamps);
  template <class Body>
  void take(Measuring& with, Pass pass, RealTime counts, Body&& body);

  TimerTask task_;
  StageSamples* samples_ = nullptr;  ///< The samples of the last walk.
  CpuStage stage_;
  TrainingData data_;
  bool is_first_;
  bool is_last_;
  Buffer parameters_;
  Buffer gradients_;
  Buffer scratch_;  ///< Scratch of full backwards.
  Optimizer optimizer_;
  std::vector<float> loss_weights_;
  std::vector<Slot> slots_;
  Stamps stamps_;
  std::size_t in_flight_ = 1;
  std::size_t turn_ = 0;
  Duration before_{};
  std::vector<PassTimes> was_measured_;
  std::array<RealTime, kAllPasses.size()> last_{};  ///< The last time of each kind of pass.
  std::atomic<bool> is_done_{false};
  std::atomic<std::size_t> turns_{0};
};

}  // namespace plumbline
