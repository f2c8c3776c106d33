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
#include "calibrate/measure/pass_samples.h"
#include "calibrate/runtime/clock.h"
#include "calibrate/training/stage_layout.h"
#include "models/network/network.h"
#include "models/profile/optimizer_kind.h"
#include "models/profile/profile.h"

namespace plumbline {

struct CalibrationOptions {
  std::vector<std::int64_t> batches = {8};  ///< Samples of a micro-batch; each is measured.
  /// Devices that work at the same time, each on its part of the network: neighbours are busy, as
  /// they will be.
  std::uint32_t devices = 1;
  /// So many devices hold the same part, as in plan.data_parallel: device q of copy c is device
  /// q x copies + c.
  std::uint32_t copies = 1;
  OptimizerKind optimizer = OptimizerKind::gradient_descent;  ///< Whose updates are timed.
  double min_seconds = 1;   ///< Measured for each batch, after the warm-up.
  double max_seconds = 20;  ///< The noise decides between the two.
  std::uint64_t seed = 1;
  double round_seconds = 2;          ///< Between two pauses, where there are clean passes enough.
  std::size_t max_samples = 20'000;  ///< Of each kind of pass on each device.
  bool slowdown = true;              ///< Also with fewer devices at work, where there are several.
  bool in_flight = true;             ///< Also with one micro-batch in flight.
  /// One round, and one with each number of fewer devices at work, whatever the noise and the times
  /// above say and an earlier calibration has.
  bool one_more_round = false;
  /// Told now and then: what is measured, and the share of the most time that has passed.
  std::function<void(const std::string& what, double share)> progress;

  /// What an earlier calibration of the same head has measured: it counts as if this one had.
  KeptCalibration kept;
  /// Given each round while nothing is measured; what it returns ends the calibration.
  std::function<std::optional<Diagnostic>(const KeptRound&)> keep;
  /// Asked now and then; true ends the calibration after the passes under way.
  std::function<bool()> interrupted;
};

/// What was measured, here and by an earlier calibration that was kept.
struct Measured {
  bool interrupted = false;           ///< Then not all of it.
  std::vector<BatchSamples> batches;  ///< Ascending.
  std::optional<double> load;         ///< The load average of the last minute, at the start.
  std::optional<double>
      clock;  ///< Of the devices at work, in MHz; nothing where that is not known.
  /// The slowest that was measured while all devices work, as a share of the fastest.
  double min_clock = 1;
};

/// What a calibration found besides the profile.
struct Calibration {
  Model model;                        ///< Layers and profile, provenance included.
  std::vector<std::string> left_out;  ///< A sentence for each batch without a result.
  /// The share of passes in which other work took the device away, or after which its clock was
  /// below 75 % of the fastest.
  double dropped = 0;
  double drift =
      0;  ///< Largest relative change of a stage's pass from the first half to the second.
  double noise = 0;  ///< Largest relative half-width of a 95 % interval of a stage's pass.
  double noise_one_in_flight =
      0;  ///< The same of what was measured with one micro-batch in flight.
  std::int64_t passes = 0;
  /// How much longer a stage's pass takes as one piece than its layers, timed one by one, add up
  /// to, both without their stamps: the largest relative difference, with its sign. The profile's
  /// layers are taken back to the piece. Nothing where layers add up by the way they are timed.
  std::optional<double> closure;
  /// By kind of layer: the factors of its time with 0, 1, ... neighbours at work, against all at
  /// work. Empty where it was not measured.
  KindFactors slowdown;
  /// By kind of layer: the factors of its time with 1, 2, ... micro-batches in flight, against one
  /// more than there are devices. Empty where it was not measured.
  KindFactors in_flight;

  /// What it takes to time a pass, at most, where that is known: it is in no time of the profile.
  std::optional<Duration> stamps;
  /// How many times as long updates take where all devices update at once, against those among the
  /// passes of others. Nothing where that was not measured.
  std::optional<double> updates_at_once;

  /// A smaller relative change by neighbours is not told from what this machine does by itself, and
  /// does not go into the profile: 0.5 %, twice the drift, or twice the noise, whichever is the
  /// most.
  double min_slowdown() const;
  /// The same for in_flight, which is measured in turn with the rest, so that no drift is in it: 1
  /// %, or twice the noise of either.
  double min_in_flight() const;
};

/// The devices of one calibration, each with its layers, for micro-batches of one size. They walk
/// in rounds: start(), count_from(), go_on() again and again, stop().
class StageTimers {
 public:
  virtual ~StageTimers() = default;

  /// How long they walk before passes count: at the very first, and after a pause.
  virtual RealTime warm_up(bool is_first) const = 0;
  /// These devices begin to walk, `at_once` of them at a time, pass by pass in turn; the others
  /// rest. Each has `in_flight` micro-batches between F and B, at most one more than there are
  /// devices. Passes are added to the samples (by device, of all), which outlive the walk. `before`
  /// was measured earlier. Requires: all at once, unless the devices take turns.
  virtual void start(const std::vector<std::uint32_t>& devices, std::uint32_t at_once,
                     std::uint32_t in_flight, Duration before,
                     std::vector<StageSamples>& samples) = 0;
  /// Passes count from this time on, which is now.
  virtual void count_from(RealTime time) = 0;
  /// Lets some 20 ms pass. Throws what a device threw, and then all rest.
  virtual void go_on() = 0;
  /// All rest. Throws what a device threw.
  virtual void stop() = 0;

  // To be asked at any time, of those that walk.

  /// Whether more passes are not worth their time, for any device.
  virtual bool all_done() const = 0;
  /// The turns of the device that has had the fewest since they count; 0 as long as some kind of
  /// update has not, or what a round needs besides.
  virtual std::size_t min_turns() const = 0;
  /// So many turns in a row have every kind of pass in every way in which it is timed.
  virtual std::size_t cycle() const { return 8; }
  /// Of devices at work, in MHz, where that is known; of the slowest where it is measured.
  virtual std::optional<double> clock() { return std::nullopt; }
  /// Whether that is measured on the devices that work.
  virtual bool measures_clock() const { return false; }

  /// What a device has added to its samples since start(). Requires: all rest.
  virtual const std::vector<PassTimes>& was_measured(std::uint32_t device) const = 0;
};

/// Devices of one kind that networks can be calibrated on.
class CalibrationDevices {
 public:
  virtual ~CalibrationDevices() = default;

  virtual std::string_view backend() const = 0;
  /// Whether some of them at work means that all take turns, as in a pipeline, where a device finds
  /// its caches as the others left them; otherwise the others rest.
  virtual bool takes_turns() const { return false; }
  /// Why they do not run this network, if so.
  virtual std::optional<Diagnostic> check_network_runs(const Network& network,
                                                       const Mark& mark) const = 0;
  /// Why there are not so many, if so.
  virtual std::optional<Diagnostic> check_count(std::uint32_t devices, const Mark& mark) const = 0;
  /// Of all of them, where that is known.
  virtual std::optional<Bytes> available_memory() const = 0;
  /// What decides their times, by name: "processor", "library".
  virtual CalibrationHead head() const = 0;
  /// What a profile says of them, `devices` of which were busy.
  virtual std::map<std::string, std::string> provenance(std::uint32_t devices) const = 0;
  /// Allocates. All that is given outlives the walkers. Errors: an exception.
  virtual std::unique_ptr<StageTimers> timers(const Network& network, const StageLayers& stages,
                                              const CalibrationOptions& options,
                                              std::int64_t batch) = 0;
  /// What ops and hand-overs cost by themselves in a run on these devices. Asked after the walks.
  virtual Overheads overheads(const Network& network, const CalibrationOptions& options) = 0;
  /// What their libraries have been given so far, by what they compute; a run takes the same.
  virtual std::map<std::string, std::string> algorithms() const { return {}; }
  /// Libraries are given these where they compute the same. Before the walks.
  virtual void take_algorithms(const std::map<std::string, std::string>& /*algorithms*/) {}
  /// The links between them, measured with tensors of these ascending sizes; the first is what lies
  /// between neighbours in a run. Without the hand-over of overheads(), which a prediction adds.
  virtual std::vector<MeasuredLink> links(const std::vector<Bytes>& /*sizes*/) { return {}; }
};

/// The batches of the options, ascending, each once.
std::vector<std::int64_t> batches_of(const CalibrationOptions& options);

/// What decides the times of a calibration on these devices by `tool`: version and commit.
CalibrationHead calibration_head(const CalibrationDevices& devices, const Network& network,
                                 const CalibrationOptions& options, std::string_view tool);

/// Why these devices cannot calibrate so, if that is so, told before anything is allocated: a
/// network that they do not run; devices that copies do not divide; more devices of a copy than
/// layers, or more of all than there are (no device); more than the memory holds (infeasible).
std::optional<Diagnostic> check_calibration(const CalibrationDevices& devices,
                                            const Network& network, const Mark& mark,
                                            const CalibrationOptions& options);

/// Times F, B, I and W of every layer where it will stand: each device walks the layers of its
/// stage in order, forward and backward in turn as in a steady pipeline, over as many buffers as
/// micro-batches are in flight, with its neighbours busy; differences of stamps between layers add
/// up to the pass. Means are trimmed. It measures in rounds of some seconds; between two of them
/// all devices rest, and a round after which the clock is below 75 % of the fastest is dropped.
/// With the largest batch there are rounds in between in which only some of the devices work: what
/// neighbours cost. Errors: those of check_calibration and of `keep`; kept passes that are not of
/// this network.
Result<Measured> measure_layers(CalibrationDevices& devices, const Network& network,
                                const Mark& mark, const CalibrationOptions& options);

/// What that says: a measurement for each batch that has a clean pass of every kind; the others are
/// left out. The provenance tells devices, options and quality. A kind of layer whose time depends
/// on the number of neighbours at work (by min_slowdown() or more) has its factors in the
/// profile. Requires: at least one batch. Errors: every batch is left out.
Result<Calibration> calibration_of(const CalibrationDevices& devices, const Network& network,
                                   const Mark& mark, const CalibrationOptions& options,
                                   const Measured& measured);

/// What a calibration ends with when a device fails under way (infeasible).
Diagnostic failed_device(const std::runtime_error& error);

/// Puts what belongs to no layer into the profile, after the walks: the algorithms of libraries,
/// the overheads of a run on these devices, and their links, by sizes about those that the
/// network's layers hand on. Errors: an exception of the devices.
void measure_between(CalibrationDevices& devices, const Network& network,
                     const CalibrationOptions& options, Profile& profile);

}  // namespace plumbline
