// The layers of real runs, timed again beside them: how the machine has changed since the profile.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "calibrate/measure/calibration.h"
#include "sim/prediction/outcome.h"
#include "sim/scenario/scenario.h"

namespace plumbline {

/// What is timed again: a network at one size of micro-batches, on as many devices as its runs use,
/// with as many of its copies.
/// Walks are added up, as if they were rounds of one calibration with pauses between them; each has
/// buffers of its own, so that none of them decides.
class Recalibration {
 public:
  /// `profile` is what runs were predicted from: libraries take its algorithms where it was
  /// measured on such devices.
  Recalibration(std::shared_ptr<const Network> network, CalibrationOptions options,
                const Profile& profile);

  bool is_of(const Network& network, const CalibrationOptions& options) const;
  const Network& network() const { return *network_; }
  const CalibrationOptions& options() const { return options_; }

  /// Times all layers once more, for some seconds. Errors: those of measure_layers; a device that
  /// fails.
  std::optional<Diagnostic> measure_pass(CalibrationDevices& devices);

  /// "the layers were timed again 4 times: noise 0.41 %, drift 2.3 %"; or why that says nothing.
  std::string remark() const;
  /// What all walks say; nothing where other work left no clean pass.
  const std::optional<Calibration>& calibration() const { return calibration_; }

 private:
  std::shared_ptr<const Network> network_;
  CalibrationOptions options_;
  Profile profile_;
  std::uint32_t measured_passes_ = 0;
  std::optional<Calibration> calibration_;
  std::string missing_;  ///< Why there is none.
};

/// Those of several runs; runs of one network in as many copies on as many devices with
/// micro-batches of one size share one.
class Recalibrations {
 public:
  /// Opens devices for a network, which outlives them.
  using Open = std::function<Result<std::unique_ptr<CalibrationDevices>>(
      const Network& network, const CalibrationOptions& options)>;

  /// A walk takes so many seconds, and as many again for each number of devices at work at a time.
  explicit Recalibrations(Open open, double pass_seconds = 1)
      : open_(std::move(open)), pass_seconds_(pass_seconds) {}

  /// What this run consists of will be timed, too. Errors: the model is no network; those of
  /// check_calibration and of opening devices.
  std::optional<Diagnostics> add(const Scenario& scenario, const Outcome& predicted);
  /// Times everything once more. Errors: those of Recalibration::walk.
  std::optional<Diagnostics> measure_pass();
  /// The same run (stages, devices, order) with the times of all walks in place of the profile's.
  /// Nothing where they are not known. Requires: it was added. Errors: those of predict().
  Result<std::optional<Outcome>> predict(const Scenario& scenario, const Outcome& predicted) const;

  /// What this run consists of. Requires: it was added.
  const Recalibration& of(const Scenario& scenario, const Outcome& predicted) const;

 private:
  CalibrationOptions options_for(const Scenario& scenario, const Outcome& predicted) const;

  Open open_;
  double pass_seconds_;
  std::vector<Recalibration> all_;
};

}  // namespace plumbline
