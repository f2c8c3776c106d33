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

/// One thing that is timed again: a network with micro-batches of one size, on as many devices and
/// with as many copies as its runs use.
/// Walks add up as if they were rounds of one calibration with pauses between them. Each walk has
/// its own buffers, so that no single placement of them decides.
class Recalibration {
 public:
  /// `profile` is the one that runs were predicted from. Libraries use its algorithms where it was
  /// measured on such devices.
  Recalibration(std::shared_ptr<const Network> network, CalibrationOptions options,
                const Profile& profile);

  bool is_of(const Network& network, const CalibrationOptions& options) const;
  const Network& network() const { return *network_; }
  const CalibrationOptions& options() const { return options_; }

  /// Times all layers once more, for some seconds. Errors: those of measure_layers; a device that
  /// fails.
  std::optional<Diagnostic> measure_pass(CalibrationDevices& devices);

  /// "the layers were timed again 4 times: noise 0.41 %, drift 2.3 %"; or the reason why there is
  /// no result.
  std::string remark() const;
  /// The result of all walks; nothing where other work left no clean pass.
  const std::optional<Calibration>& calibration() const { return calibration_; }

 private:
  std::shared_ptr<const Network> network_;
  CalibrationOptions options_;
  Profile profile_;
  std::uint32_t measured_passes_ = 0;
  std::optional<Calibration> calibration_;
  std::string missing_;  ///< The reason for no calibration.
};

/// The recalibrations of several runs. Runs with the same network, copies, devices and micro-batch
/// size share one.
class Recalibrations {
 public:
  /// Opens devices for a network, which outlives them.
  using Open = std::function<Result<std::unique_ptr<CalibrationDevices>>(
      const Network& network, const CalibrationOptions& options)>;

  /// A walk takes `pass_seconds`, and as many again for each smaller number of devices at work.
  explicit Recalibrations(Open open, double pass_seconds = 1)
      : open_(std::move(open)), pass_seconds_(pass_seconds) {}

  /// Adds the network of this run to those that are timed. Errors: the model is no network; those
  /// of check_calibration and of opening devices.
  std::optional<Diagnostics> add(const Scenario& scenario, const Outcome& predicted);
  /// Times everything once more. Errors: those of Recalibration::measure_pass.
  std::optional<Diagnostics> measure_pass();
  /// The same run (stages, devices, order) with the times of all walks in place of the profile's.
  /// Nothing where these are unknown. Requires: it was added. Errors: those of predict().
  Result<std::optional<Outcome>> predict(const Scenario& scenario, const Outcome& predicted) const;

  /// The recalibration that this run belongs to. Requires: it was added.
  const Recalibration& of(const Scenario& scenario, const Outcome& predicted) const;

 private:
  CalibrationOptions options_for(const Scenario& scenario, const Outcome& predicted) const;

  Open open_;
  double pass_seconds_;
  std::vector<Recalibration> all_;
};

}  // namespace plumbline
