// Walks that add up to one calibration, and runs predicted from it.
//
// SPDX-License-Identifier: MIT
#include "calibrate/measure/recalibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/bug.h"
#include "models/network/network_content.h"
#include "sim/planning/predict.h"

namespace plumbline {
namespace {

/// No limit of the measuring time, in seconds: only the rounds limit it.
constexpr double kNoLimit = 1e9;

/// The number of copies of the network on its devices: the fewest devices of any stage, or 1 if
/// that does not divide the number of devices.
std::uint32_t copies_in(const OpGraph& graph) {
  std::size_t min = graph.slots();
  for (const std::vector<std::uint32_t>& slots : graph.stage_slots)
    min = std::min(min, slots.size());
  return graph.slots() % min == 0 ? static_cast<std::uint32_t>(min) : 1;
}

}  // namespace

Recalibration::Recalibration(std::shared_ptr<const Network> network, CalibrationOptions options,
                             const Profile& profile)
    : network_(std::move(network)), options_(std::move(options)), profile_(profile) {}

bool Recalibration::is_of(const Network& network, const CalibrationOptions& options) const {
  return options.batches == options_.batches && options.devices == options_.devices &&
         options.copies == options_.copies && options.optimizer == options_.optimizer &&
         options.slowdown == options_.slowdown &&
         network_fingerprint(network) == network_fingerprint(*network_);
}

std::optional<Diagnostic> Recalibration::measure_pass(CalibrationDevices& devices) {
  CalibrationOptions options = options_;
  ++measured_passes_;
  options.max_samples *= measured_passes_;  // each walk has as many
  const auto same = [&, here = devices.provenance(options.devices)](const std::string& name) {
    const auto own = here.find(name);
    const auto told = profile_.provenance.find(name);
    return own != here.end() && told != profile_.provenance.end() && own->second == told->second;
  };
  if (measured_passes_ == 1 && same("device") && same("library")) {  // as in a run
    KeptRound algorithms;
    algorithms.batch = options.batches.front();
    algorithms.algorithms = profile_.algorithms;
    options.kept.rounds.push_back(algorithms);
    options_.kept.rounds.push_back(std::move(algorithms));
  }
  std::vector<KeptRound> rounds;
  options.keep = [&](const KeptRound& round) -> std::optional<Diagnostic> {
    rounds.push_back(round);
    return std::nullopt;
  };
  try {
    const auto measured = measure_layers(devices, *network_, {}, options);
    if (!measured) return measured.problems().front();
    auto calibration = calibration_of(devices, *network_, {}, options, *measured);
    calibration_.reset();
    if (calibration) {
      calibration_ = *std::move(calibration);
    } else {
      missing_ = calibration.problems().front().message;
    }
  } catch (const std::runtime_error& error) {
    return failed_device(error);
  }
  auto& kept = options_.kept.rounds;
  kept.insert(kept.end(), std::make_move_iterator(rounds.begin()),
              std::make_move_iterator(rounds.end()));
  return std::nullopt;
}

std::string Recalibration::remark() const {
  if (!calibration_) return "the layers were timed again to no end: " + missing_;
  return fmt::format("the layers were timed again {} times: noise {:.2f} %, drift {:.2f} %",
                     measured_passes_, 100 * calibration_->noise, 100 * calibration_->drift);
}

CalibrationOptions Recalibrations::options_for(const Scenario& scenario,
                                               const Outcome& predicted) const {
  CalibrationOptions options;
  options.batches = {scenario.micro_batch_size};
  options.devices = static_cast<std::uint32_t>(predicted.graph.slots());
  options.copies = copies_in(predicted.graph);
  options.optimizer = optimizer_for(scenario.optimizer_state);
  options.slowdown = scenario.neighbours_slow;
  options.round_seconds = pass_seconds_;
  options.one_more_round = true;
  options.min_seconds = options.max_seconds = kNoLimit;
  return options;
}

std::optional<Diagnostics> Recalibrations::add(const Scenario& scenario, const Outcome& predicted) {
  if (!scenario.network) {
    return Diagnostics{input_error(scenario.model_mark,
                                   "the model is no network: it has no layers that can be timed",
                                   "model.network: FILE, or leave --recalibrate out")};
  }
  const CalibrationOptions options = options_for(scenario, predicted);
  const auto is_same = [&](const Recalibration& one) {
    return one.is_of(*scenario.network, options);
  };
  if (std::any_of(all_.begin(), all_.end(), is_same)) return std::nullopt;
  const auto devices = open_(*scenario.network, options);
  if (!devices) return devices.problems();
  const Mark& mark = scenario.model_mark;
  if (auto refused = check_calibration(**devices, *scenario.network, mark, options)) {
    refused->help +=
        refused->help.empty() ? "leave --recalibrate out" : "; or leave --recalibrate out";
    return Diagnostics{*std::move(refused)};
  }
  all_.emplace_back(scenario.network, options, scenario.model->profile);
  return std::nullopt;
}

std::optional<Diagnostics> Recalibrations::measure_pass() {
  for (Recalibration& one : all_) {
    const auto devices = open_(one.network(), one.options());
    if (!devices) return devices.problems();
    if (auto failed = one.measure_pass(**devices)) return Diagnostics{*std::move(failed)};
  }
  return std::nullopt;
}

const Recalibration& Recalibrations::of(const Scenario& scenario, const Outcome& predicted) const {
  const CalibrationOptions options = options_for(scenario, predicted);
  const auto found = std::find_if(all_.begin(), all_.end(), [&](const Recalibration& one) {
    return one.is_of(*scenario.network, options);
  });
  PLUMBLINE_CHECK(found != all_.end(), scenario.name, all_.size());
  return *found;
}

Result<std::optional<Outcome>> Recalibrations::predict(const Scenario& scenario,
                                                       const Outcome& predicted) const {
  const auto& calibration = of(scenario, predicted).calibration();
  if (!calibration) return std::optional<Outcome>();
  Scenario again = scenario;
  const Profile& timed = calibration->model.profile;
  Profile& profile = again.model.edit().profile;
  profile.measurements = timed.measurements;
  profile.slowdown = timed.slowdown;
  profile.in_flight = timed.in_flight;
  again.noise.reset();  // a single run is compared
  auto outcome = plumbline::predict(again, Evaluation::events, &predicted.setup.partition);
  if (!outcome) return outcome.problems();
  return std::optional<Outcome>(*std::move(outcome));
}

}  // namespace plumbline
