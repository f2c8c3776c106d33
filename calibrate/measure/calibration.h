// Timing the layers of a network on devices of any kind.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "calibrate/measure/calibration_file.h"
#include "calibrate/measure/kernel_bench.h"
#include "calibrate/measure/pass_samples.h"
#include "calibrate/runtime/clock.h"
#include "calibrate/training/stage_layout.h"
#include "models/network/network.h"
#include "models/profile/optimizer_kind.h"
#include "models/profile/profile.h"

namespace plumbline {

struct CalibrationOptions {
  std::vector<std::int64_t> batches = {8};  ///< Micro-batch sizes, in samples.
  /// The devices that work at the same time, each on its part of the network. So neighbours are
  /// busy, as in a run.
  std::uint32_t devices = 1;
  /// The number of devices that hold the same part, as in plan.data_parallel: device q of copy c is
  /// device q x copies + c.
  std::uint32_t copies = 1;
  OptimizerKind optimizer = OptimizerKind::gradient_descent;  ///< Its updates are timed.
  double min_seconds = 1;   ///< The least time per batch, after the warm-up.
  double max_seconds = 20;  ///< The most time per batch; the noise decides.
  std::uint64_t seed = 1;
  double round_seconds = 2;          ///< Between two pauses, if enough passes are clean.
  std::size_t max_samples = 20'000;  ///< Per kind of pass and device.
  bool slowdown = true;              ///< Whether to measure with fewer devices at work too.
  bool in_flight = true;             ///< Whether to measure with one micro-batch in flight too.
  /// Measures exactly one round, and one with each smaller number of devices at work. The noise,
  /// the times above and the kept rounds then do not count.
  bool one_more_round = false;
  /// Called now and then with what is measured, and the share of the most time that has passed.
  std::function<void(const std::string& what, double share)> progress;

  /// The rounds of an earlier calibration with the same head. They count as if this one had
  /// measured them.
  KeptCalibration kept;
  /// Called with each round, while nothing is measured. A diagnostic that it returns ends the
  /// calibration.
  std::function<std::optional<Diagnostic>(const KeptRound&)> keep;
  /// Called now and then; true ends the calibration after the current passes.
  std::function<bool()> interrupted;
};

/// All measurements: those of this calibration, and those kept from an earlier one.
struct Measured {
  bool interrupted = false;           ///< If so, some measurements are missing.
  std::vector<BatchSamples> batches;  ///< Ascending.
  std::optional<double> load;         ///< The load average of the last minute, at the start.
  std::optional<double> clock;        ///< The clock of the devices at work, in MHz, if it is known.
  /// The slowest clock measured while all devices work, as a share of the fastest.
  double min_clock = 1;
};

/// The profile, and what else a calibration found.
struct Calibration {
  Model model;                        ///< Layers and profile, provenance included.
  std::vector<std::string> left_out;  ///< A sentence for each batch without a result.
  /// The share of dropped passes: other work took the device away, or the clock after the pass was
  /// below 75 % of the fastest.
  double dropped = 0;
  /// Largest relative change of a stage's pass from the first half to the second.
  double drift = 0;
  double noise = 0;  ///< Largest relative half-width of a 95 % interval of a stage's pass.
  double noise_one_in_flight = 0;  ///< The same, with one micro-batch in flight.
  std::int64_t passes = 0;
  /// The largest relative difference, with its sign, between a stage's pass as one piece and the
  /// sum of its layers. Both are without their time stamps; positive = the piece takes longer. The
  /// profile's layers are scaled to the piece. Nothing where layers add up by the way they are
  /// timed.
  std::optional<double> closure;
  /// By kind of layer: the factors of its time with 0, 1, ... neighbours at work, against all at
  /// work. Empty where it was not measured.
  KindFactors slowdown;
  /// By kind of layer: the factors of its time with 1, 2, ... micro-batches in flight, against one
  /// more than there are devices. Empty where it was not measured.
  KindFactors in_flight;

  /// The most that timing a pass costs, where that is known. No time of the profile contains it.
  std::optional<Duration> stamps;
  /// The ratio of the time of updates at once on all devices to that of updates among other passes.
  /// Nothing where that was not measured.
  std::optional<double> updates_at_once;

  /// The least relative change by neighbours that goes into the profile. A smaller one cannot be
  /// distinguished from this machine's own variation. It is the largest of 0.5 %, twice the drift
  /// and twice the noise.
  double min_slowdown() const;
  /// The same for in_flight: the larger of 1 % and twice the noise of either measurement. Its
  /// rounds alternate with the others, so there is no drift in it.
  double min_in_flight() const;
};

/// The devices of one calibration, each with its layers, for micro-batches of one size. They walk
/// in rounds: start(), count_from(), go_on() again and again, stop().
class StageTimers {
 public:
  virtual ~StageTimers() = default;

  /// The time that devices walk before passes count: at the very first, or after a pause.
  virtual RealTime warm_up(bool is_first) const = 0;
  /// Starts these devices: `at_once` of them walk at a time, in turns of one pass; the others rest.
  /// Each has `in_flight` micro-batches between F and B, at most one more than there are devices.
  /// Passes are added to the samples (one entry for every device), which outlive the walk. `before`
  /// is the time measured earlier. Requires: all at once, unless the devices take turns.
  virtual void start(const std::vector<std::uint32_t>& devices, std::uint32_t at_once,
                     std::uint32_t in_flight, Duration before,
                     std::vector<StageSamples>& samples) = 0;
  /// Passes count from this time on, which is now.
  virtual void count_from(RealTime time) = 0;
  /// Lets some 20 ms pass. Throws the exception of a device; then all rest.
  virtual void go_on() = 0;
  /// Lets all devices rest. Throws the exception of a device.
  virtual void stop() = 0;

  // These may be called at any time; they are about the devices that walk.

  /// Whether no device needs more passes.
  virtual bool all_done() const = 0;
  /// The fewest turns of any device since passes count. 0 as long as a kind of update, or something
  /// else that a round needs, is missing.
  virtual std::size_t min_turns() const = 0;
  /// The number of turns in a row that contain every kind of pass, timed in every way.
  virtual std::size_t cycle() const { return 8; }
  /// The clock of devices at work, in MHz, where that is known; the slowest device's where it is
  /// measured.
  virtual std::optional<double> clock() { return std::nullopt; }
  /// Whether the clock is measured on the devices that work.
  virtual bool measures_clock() const { return false; }

  /// The passes that a device has added to its samples since start(). Requires: all rest.
  virtual const std::vector<PassTimes>& was_measured(std::uint32_t device) const = 0;
};

/// Devices of one kind that networks can be calibrated on.
class CalibrationDevices {
 public:
  virtual ~CalibrationDevices() = default;

  virtual std::string_view backend() const = 0;
  /// Whether all devices take turns when only some work at a time. As in a pipeline, each then
  /// finds its caches as the others left them. Otherwise the others rest.
  virtual bool takes_turns() const { return false; }
  /// The reason why they do not run this network, if there is one.
  virtual std::optional<Diagnostic> check_network_runs(const Network& network,
                                                       const Mark& mark) const = 0;
  /// An error if there are fewer devices than this.
  virtual std::optional<Diagnostic> check_count(std::uint32_t devices, const Mark& mark) const = 0;
  /// The memory of all of them together, where that is known.
  virtual std::optional<Bytes> available_memory() const = 0;
  /// The facts that decide their times, by name: "processor", "library".
  virtual CalibrationHead head() const = 0;
  /// The provenance for a profile that was measured with `devices` of them busy.
  virtual std::map<std::string, std::string> provenance(std::uint32_t devices) const = 0;
  /// Allocates the walkers. All arguments outlive them. Errors: an exception.
  virtual std::unique_ptr<StageTimers> timers(const Network& network, const StageLayers& stages,
                                              const CalibrationOptions& options,
                                              std::int64_t batch) = 0;
  /// The overheads of ops and hand-overs in a run on these devices. Called after the walks.
  virtual Overheads overheads(const Network& network, const CalibrationOptions& options) = 0;
  /// The algorithms chosen for their libraries so far, by what they compute. A run uses the same
  /// ones.
  virtual std::map<std::string, std::string> algorithms() const { return {}; }
  /// Sets the algorithms that libraries use for the same computations. Called before the walks.
  virtual void take_algorithms(const std::map<std::string, std::string>& /*algorithms*/) {}
  /// The kernels of the first of them, timed one by one; nullptr = it times none. Errors: an
  /// exception of the device.
  virtual std::unique_ptr<KernelBench> kernel_bench(const KernelForms& /*forms*/) {
    return nullptr;
  }
  /// The links between them, measured with tensors of these ascending sizes. The first link is the
  /// one between neighbours in a run. Times exclude the hand-over of overheads(), which a
  /// prediction adds. With options.slowdown also while other devices work on the network, where
  /// that can matter. Called after the walks.
  virtual std::vector<MeasuredLink> links(const Network& /*network*/, const StageLayers& /*stages*/,
                                          const CalibrationOptions& /*options*/,
                                          const std::vector<Bytes>& /*sizes*/) {
    return {};
  }
};

/// The batches of the options, ascending, each once.
std::vector<std::int64_t> batches_of(const CalibrationOptions& options);

/// The head of a calibration on these devices: all that decides its times. `tool` is version and
/// commit.
CalibrationHead calibration_head(const CalibrationDevices& devices, const Network& network,
                                 const CalibrationOptions& options, std::string_view tool);

/// The reason why these devices cannot calibrate with these options, if there is one, before
/// anything is allocated: a network that they do not run; a number of devices that copies do not
/// divide; more devices per copy than layers; more devices than there are (no device); more than
/// the memory holds (infeasible).
std::optional<Diagnostic> check_calibration(const CalibrationDevices& devices,
                                            const Network& network, const Mark& mark,
                                            const CalibrationOptions& options);

/// Times F, B, I and W of every layer in its place in the pipeline. Each device walks the layers of
/// its stage in order, forward and backward in turn as in a steady pipeline. It uses as many
/// buffers as micro-batches are in flight, and its neighbours are busy. Differences of time stamps
/// between layers add up to the pass. Means are trimmed. It measures in rounds of some seconds, and
/// between two rounds all devices rest. A round after which the clock is below 75 % of the fastest
/// is dropped. With the largest batch, some rounds have only some of the devices at work, to
/// measure the slowdown by neighbours. Errors: those of check_calibration and of `keep`; kept
/// passes that are not of this network.
Result<Measured> measure_layers(CalibrationDevices& devices, const Network& network,
                                const Mark& mark, const CalibrationOptions& options);

/// The profile from these measurements. It has each batch with a clean pass of every kind; the
/// others are left out. The provenance states devices, options and quality. The profile has
/// slowdown factors for each kind of layer that neighbours at work change by min_slowdown() or
/// more. Requires: at least one batch. Errors: every batch is left out.
Result<Calibration> calibration_of(const CalibrationDevices& devices, const Network& network,
                                   const Mark& mark, const CalibrationOptions& options,
                                   const Measured& measured);

/// The diagnostic for a device that fails during a calibration (infeasible).
Diagnostic failed_device(const std::runtime_error& error);

/// Adds to the profile what belongs to no layer, after the walks: the algorithms of libraries, the
/// overheads of a run on these devices, and their links, for sizes near those of the network's
/// activations. Errors: an exception of the devices.
void measure_between(CalibrationDevices& devices, const Network& network,
                     const CalibrationOptions& options, Profile& profile);

}  // namespace plumbline
