// One CUDA device that walks a stage of a network again and again, every layer timed.
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "calibrate/clock.h"
#include "calibrate/cuda/devices.h"
#include "calibrate/cuda/events.h"
#include "calibrate/cuda/products.h"
#include "calibrate/cuda/stage.h"
#include "calibrate/pass_samples.h"
#include "calibrate/training_data.h"
#include "models/network.h"
#include "models/optimizer_kind.h"

namespace plumbline {

/// What a device walks.
struct CudaWalk {
  std::size_t first = 0;  ///< Layers first..last.
  std::size_t last = 0;
  std::int64_t batch = 1;
  std::uint32_t devices = 1;  ///< That walk beside each other.
  OptimizerKind optimizer = OptimizerKind::gradient_descent;
  std::uint64_t seed = 1;
};

/// Forward and backward in turn, as Walker of cpu_walker.h: over one buffer more than there are
/// devices; every fourth backward is I and then W; an update follows every eighth forward. Turns
/// are enqueued ahead, and their times read when they have ended. All calls come from one thread,
/// with the device's context current; the destructor makes it so.
class CudaWalker {
 public:
  /// Allocates. All that is given outlives it. Errors: CudaError.
  CudaWalker(const CudaDriver& driver, const CudaDevice& device, CudaProducts& products,
             const Network& network, const CudaWalk& walk);
  ~CudaWalker();
  CudaWalker(const CudaWalker&) = delete;
  CudaWalker& operator=(const CudaWalker&) = delete;

  /// Passes that are enqueued from now on do not count; those that will are added to `samples`,
  /// which outlives the walk. Forgets what was walked. `before` was measured earlier.
  void start(Duration before, StageSamples& samples);
  /// Passes that are enqueued from now on count.
  void count_from(RealTime time) { counts_ = time; }

  /// Enqueues turns until enough are ahead, and reads what has ended; returns whether that was
  /// anything.
  bool go_on();
  /// Waits for all that is enqueued, and reads it.
  void stop();

  bool is_done() const { return samples_->is_done(); }
  std::size_t turns() const { return turns_; }
  const std::vector<PassTimes>& walked() const { return walked_; }
  /// From the end of a pass to the begin of the next one that was enqueued before that end, ns; the
  /// latest of them.
  const std::vector<double>& gaps() const { return gaps_; }

 private:
  struct Slot {
    CudaScratch input, output, kept, left, output_gradient, input_gradient, labels;
  };
  /// A pass on its way.
  struct Pending {
    Pass pass = Pass::forward;
    CudaEvents stamps;
    bool counts = false;
    bool ends_turn = false;
  };

  CudaStageTensors tensors(std::size_t slot) const;
  CudaScratch filled(std::size_t bytes, std::uint64_t seed, double scale) const;
  CudaScratch uploaded(const void* data, std::size_t bytes) const;
  void enqueue_turn();
  template <class Body>
  void enqueue(Pass pass, Body&& body);
  void update(CudaStamps stamps);
  bool read();
  void take(Pending pending);
  double between(CUevent first, CUevent second) const;

  const CudaDriver& driver_;
  CUcontext context_;
  CudaQueue queue_;
  const Network& network_;
  CudaWalk walk_;
  StageSamples* samples_ = nullptr;  ///< Of the last walk.
  CudaStage stage_;
  bool is_first_;
  bool is_last_;
  CudaOptimizer optimizer_;
  CudaScratch parameters_;
  CudaScratch gradients_;
  CudaScratch loss_weights_;
  std::vector<Slot> slots_;
  std::deque<Pending> pending_;
  std::vector<CudaEvents> free_;  ///< Stamps that nobody uses.
  CudaEvents last_stamps_;        ///< Of the pass that was read last.
  bool has_last_ = false;
  std::size_t turn_ = 0;
  std::size_t ahead_ = 0;  ///< Turns that are enqueued and not read.
  std::size_t turns_ = 0;
  Duration before_{};
  RealTime counts_ = 0;
  std::vector<PassTimes> walked_;
  std::vector<double> gaps_;
};

}  // namespace plumbline
