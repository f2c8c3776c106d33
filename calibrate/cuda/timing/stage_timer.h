// One CUDA device that repeats a stage of a network, with every layer timed.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "calibrate/cuda/driver/events.h"
#include "calibrate/cuda/driver/queue.h"
#include "calibrate/cuda/driver/recording.h"
#include "calibrate/cuda/driver/timing.h"
#include "calibrate/cuda/layers/stage.h"
#include "calibrate/measure/pass_samples.h"
#include "calibrate/runtime/clock.h"
#include "calibrate/training/training_data.h"
#include "models/network/network.h"
#include "models/profile/optimizer_kind.h"

namespace plumbline {

/// The stage that a device measures, and how.
struct CudaMeasuring {
  std::size_t first = 0;  ///< Layers first..last.
  std::size_t last = 0;
  std::int64_t batch = 1;
  std::uint32_t devices = 1;  ///< Devices that work beside each other;
  std::uint32_t device = 0;   ///< this one of them.
  OptimizerKind optimizer = OptimizerKind::gradient_descent;
  std::uint64_t seed = 1;
};

/// Runs forward and backward in turn, as Walker of cpu_walker.h. There is one buffer more than
/// there are devices. Every fourth backward of a buffer is I and then W; updates have turns of
/// their own. Passes of a kind are timed sometimes layer by layer and sometimes as one piece, as in
/// a run. Events take time of their own, and more of it with more devices at work. So there are
/// bursts of bare turns: pieces without events between them. Where `launching` replays, a layer or
/// a piece is a graph after it has run once. Turns are enqueued in bursts, and their times are read
/// when a burst has ended. All calls come from one thread, with the device's context current. The
/// destructor makes it current itself.
class CudaStageTimer {
 public:
  /// Allocates. The queue's objects, the network and `launching` outlive it. If something cannot be
  /// recorded, `launching` says so afterwards. `per_op` is the additional time of each op in a run,
  /// in ns. Errors: CudaError.
  CudaStageTimer(const CudaQueue& queue, CUcontext context, const Network& network,
                 const CudaMeasuring& measure_pass, CudaLaunching& launching, double per_op);
  ~CudaStageTimer();
  CudaStageTimer(const CudaStageTimer&) = delete;
  CudaStageTimer& operator=(const CudaStageTimer&) = delete;

  /// Starts a walk. Passes enqueued from now on do not count yet; passes that count are added to
  /// `samples`, which outlives the walk. Forgets the last walk. `in_flight` micro-batches are in
  /// flight, at most one more than there are devices. `before` is the time that was spent on
  /// measuring earlier. The first walk first runs and records everything once. `stamps` is given if
  /// the device takes turns with others: what the events around a pass add to it, in ns, because
  /// there are no bare turns then.
  void start(std::uint32_t in_flight, Duration before, StageSamples& samples,
             std::optional<double> stamps);
  /// Passes that are enqueued from now on count; `time` is now.
  void count_from(RealTime time) { counts_ = time; }

  /// Runs every pass over every buffer once, in each way in which it is timed, and records it, if
  /// that has not been done. What runs for the first time is loaded, which may wait for the device,
  /// so no gate would hold.
  void prepare();
  /// Enqueues a forward and a backward over the next buffer, as pieces that nobody times. Requires:
  /// prepared, with no other turn enqueued that is not finished.
  void enqueue_untimed_turn();

  const CudaQueue& queue() const { return queue_; }
  /// Enqueues the first half of a turn, a forward. With `updates`, every fourth turn has an update,
  /// and only the update of that turn counts. Updates take memory bandwidth from the passes of
  /// other devices, which never happens in a pipeline with a flush.
  void enqueue_forward(bool updates);
  /// Enqueues the rest of the turn that the last forward began.
  void enqueue_backward();
  /// Whether all pieces of bare turns have run and been recorded.
  bool can_be_bare() const;
  /// Enqueues a bare turn, the `first` or `last` of its burst. Requires: can_be_bare().
  void enqueue_bare_turn(bool first, bool last);
  /// Enqueues an update by itself. Requires: the device's stream waits for the streams of all other
  /// walking devices.
  void enqueue_update_at_once();
  /// Waits for all enqueued work, a burst, and reads its times, if it `counts`.
  void finish(bool counts = true);
  /// The time of a turn in the last burst, in ns; 0 before the first burst.
  double turn_time() const { return turn_time_; }

  /// Enqueues the measurement of the clock rate.
  void count_cycles() { clock_.count(queue_); }
  /// Waits for that measurement; in MHz.
  double clock() const { return clock_.mhz(queue_); }

  bool is_done() const { return samples_->is_done(); }
  std::size_t turns() const { return turns_; }
  /// Whether updates have counted in both ways in which they are timed. `at_once` chooses the
  /// updates of enqueue_update_at_once().
  bool has_updated(bool at_once) const {
    const std::array<bool, 2>& ways = updated_[at_once ? 1 : 0];
    return ways[0] && (ways[1] || stage_.layout().layers() == 1);
  }
  /// Whether some bursts of bare turns have counted.
  bool has_been_bare() const { return bare_bursts_ >= 4; }
  /// As Walkers::cycle.
  std::size_t cycle() const;
  const std::vector<PassTimes>& was_measured() const { return was_measured_; }

 private:
  struct Slot {
    CudaScratch input, output, kept, left, output_gradient, input_gradient, labels;
  };
  /// A pass over one buffer, timed in one of the two ways.
  struct Measurable {
    bool is_piece = false;
    std::size_t parts = 1;              ///< Layers; one for a piece.
    std::vector<CudaRecording> graphs;  ///< One per part, in order.
  };
  /// A pass that is enqueued.
  struct Pending {
    Pass pass = Pass::forward;
    bool is_piece = false;
    CudaEvents stamps;  ///< Before each part and at the end.
    bool counts = false;
    bool ends_turn = false;

    std::size_t parts() const { return stamps.all().size() - 1; }
  };
  /// A row of bare turns that is enqueued.
  struct Bare {
    CudaEvents stamps;      ///< Behind the first turn, and behind the last.
    std::size_t turns = 0;  ///< Between the two.
    bool counts = false;
  };
  /// A pass in a turn.
  struct Task {
    Pass pass = Pass::forward;
    std::size_t slot = 0;
    Measurable* measurable = nullptr;
  };

  CudaStageTensors tensors(std::size_t slot) const;
  CudaScratch filled(std::size_t bytes, std::uint64_t seed, float scale) const;
  CudaScratch uploaded(const void* data, std::size_t bytes) const;
  std::vector<Task> tasks(bool updates);
  Task task_of(Pass pass, std::size_t slot) { return {pass, slot, &measurable(pass, slot)}; }
  /// The number of enqueued passes that are counted together with this one.
  std::size_t& count_of(Pass pass, std::size_t slot);
  Measurable& measurable(Pass pass, std::size_t slot);
  Measurable& measurable(Pass pass, std::size_t slot, bool is_piece);
  /// Enqueues a pass as a piece. Requires: piece_of(pass, slot).
  void enqueue_piece(Pass pass, std::size_t slot);
  void enqueue(const Task& task, bool counts);
  /// The micro-batch whose backward is in this turn; nothing while there is none.
  std::optional<std::size_t> oldest() const;
  const Measurable* piece_of(Pass pass, std::size_t slot) const;
  void take(const Bare& bare);
  void measure_pass(const Task& task, std::size_t place);
  void record(const Task& task);
  /// Updates layers from..to-1.
  void update(std::size_t from, std::size_t to);
  CudaEvents new_stamps(std::size_t parts);
  void take(const Pending& pending);
  void take_turn(const Pending& pending);
  double between(CUevent first, CUevent second) const;

  const CudaDriver& driver_;
  CUcontext context_;
  CudaQueue queue_;
  const Network& network_;
  CudaMeasuring measuring_pass_;
  StageSamples* samples_ = nullptr;  ///< The samples of the last walk.
  CudaStage stage_;
  bool is_first_;
  bool is_last_;
  CudaOptimizer optimizer_;
  CudaScratch parameters_;
  CudaScratch gradients_;
  CudaScratch loss_weights_;
  std::vector<Slot> slots_;
  std::vector<Pending> pending_;                               ///< The passes of the burst.
  Bare bare_;                                                  ///< Or its bare turns.
  std::map<std::size_t, std::vector<CudaEvents>> old_stamps_;  ///< For reuse, by parts.
  CudaLaunching& launching_;
  double per_op_;
  CudaClock clock_;
  /// By pass, buffer and whether it is timed as a piece.
  std::map<std::tuple<Pass, std::size_t, bool>, Measurable> measurables_;
  std::map<std::pair<Pass, std::size_t>, std::size_t> passes_;
  std::map<std::size_t, std::size_t> backwards_;  ///< Per buffer, split ones included.
  std::size_t in_flight_ = 1;
  std::size_t turn_ = 0;
  std::size_t untimed_turn_ = 0;
  double turn_time_ = 0;
  std::size_t turns_ = 0;
  /// Whether updates have counted: [is at once][is a piece].
  std::array<std::array<bool, 2>, 2> updated_{};
  Duration before_{};
  RealTime counts_ = 0;
  std::vector<PassTimes> was_measured_;
  std::size_t bare_bursts_ = 0;    ///< Bursts that count.
  std::optional<double> stamps_;   ///< Of a pass, if the device takes turns.
  std::optional<double> forward_;  ///< The last one that was timed as a piece meanwhile.
  std::vector<Task> rest_;         ///< Of the turn that has begun.
  bool rest_counts_ = false;
  bool is_prepared_ = false;
};

}  // namespace plumbline
