// Devices for calibrations that compute nothing. A test sets their pace.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "calibrate/measure/recalibration.h"
#include "models/network/network_reader.h"
#include "models/profile/profile_writer.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_source.h"

namespace plumbline::test {

/// The behaviour of invented devices; tests change it between walks.
struct Pace {
  double now = 1;             ///< Factor for all layers.
  double first_layer = 1;     ///< Additional factor for the first layer.
  double alone = 1;           ///< Factor while not all devices work.
  double one_in_flight = 1;   ///< Factor with one micro-batch in flight.
  bool is_disturbed = false;  ///< Other work takes the devices away in every pass.
  int opened = 0;
  int measured_passes = 0;
  StageLayers held;                               ///< Layers by device, in the last walk.
  std::map<std::string, std::string> provenance;  ///< The devices' provenance.
  std::map<std::string, std::string> algorithms;  ///< The last algorithms that they were given.
};

/// Timers that return the times of a pace.
class InventedTimers : public StageTimers {
 public:
  InventedTimers(Pace& pace, const StageLayers& stages) : pace_(pace), stages_(stages) {
    ++pace_.measured_passes;
    pace_.held = stages;
  }

  RealTime warm_up(bool /*is_first*/) const override { return 0; }
  void start(const std::vector<std::uint32_t>& devices, std::uint32_t at_once,
             std::uint32_t in_flight, Duration before,
             std::vector<StageSamples>& samples) override {
    is_one_ = in_flight == 1;
    measuring_ = devices;
    is_all_ = at_once == stages_.size();
    before_ = before;
    samples_ = &samples;
    was_measured_.assign(stages_.size(), {});
    turns_ = 0;
  }
  void count_from(RealTime time) override { begin_ = time; }
  void go_on() override {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ++turns_;
    for (const std::uint32_t device : measuring_) {
      for (const Pass pass : kAllPasses) {
        if (!(*samples_)[device].takes(pass)) continue;
        was_measured_[device].push_back({pass, times(device, pass)});
        (*samples_)[device].add(was_measured_[device].back(), before_ + Duration{now() - begin_});
      }
    }
  }
  void stop() override {}
  bool all_done() const override {
    return std::all_of(measuring_.begin(), measuring_.end(),
                       [&](std::uint32_t device) { return (*samples_)[device].is_done(); });
  }
  std::size_t min_turns() const override { return turns_; }
  const std::vector<PassTimes>& was_measured(std::uint32_t device) const override {
    return was_measured_[device];
  }

 private:
  std::vector<std::int64_t> times(std::uint32_t device, Pass pass) const {
    std::vector<std::int64_t> all;
    if (pace_.is_disturbed) return all;
    const auto [first, last] = stages_[device];
    for (std::size_t layer = first; layer <= last; ++layer) {
      const double base = pass == Pass::forward    ? 100'000
                          : pass == Pass::backward ? 200'000
                                                   : 50'000;
      all.push_back(std::llround(base * pace_.now * (layer == 0 ? pace_.first_layer : 1) *
                                 (is_all_ ? 1 : pace_.alone) *
                                 (is_one_ && pass != Pass::update ? pace_.one_in_flight : 1)));
    }
    return all;
  }

  Pace& pace_;
  StageLayers stages_;
  std::vector<std::uint32_t> measuring_;
  bool is_all_ = true;
  bool is_one_ = false;
  Duration before_{};
  RealTime begin_ = 0;
  std::vector<StageSamples>* samples_ = nullptr;
  std::vector<std::vector<PassTimes>> was_measured_;
  std::size_t turns_ = 0;
};

/// Devices whose times are those of a pace.
class InventedDevices : public CalibrationDevices {
 public:
  explicit InventedDevices(Pace& pace) : pace_(pace) { ++pace_.opened; }

  std::string_view backend() const override { return "invented"; }
  bool takes_turns() const override { return true; }
  std::optional<Diagnostic> check_network_runs(const Network&, const Mark&) const override {
    return std::nullopt;
  }
  std::optional<Diagnostic> check_count(std::uint32_t, const Mark&) const override {
    return std::nullopt;
  }
  std::optional<Bytes> available_memory() const override { return std::nullopt; }
  CalibrationHead head() const override { return {}; }
  std::map<std::string, std::string> provenance(std::uint32_t) const override {
    return pace_.provenance;
  }
  void take_algorithms(const std::map<std::string, std::string>& algorithms) override {
    pace_.algorithms = algorithms;
  }
  std::unique_ptr<StageTimers> timers(const Network&, const StageLayers& stages,
                                      const CalibrationOptions&, std::int64_t) override {
    return std::make_unique<InventedTimers>(pace_, stages);
  }
  Overheads overheads(const Network&, const CalibrationOptions&) override { return {}; }

 private:
  Pace& pace_;
};

/// Opens devices of this pace, which outlives them.
inline Recalibrations::Open invented_devices(Pace& pace) {
  return [&pace](const Network&,
                 const CalibrationOptions&) -> Result<std::unique_ptr<CalibrationDevices>> {
    return std::unique_ptr<CalibrationDevices>(std::make_unique<InventedDevices>(pace));
  };
}

/// The file of a network with four layers.
inline constexpr const char* kSmallNetwork =
    "version: 1\nkind: network\nname: small\ninput: {shape: [8]}\nlayers:\n"
    "  - {kind: linear, features: 8}\n  - {kind: linear, features: 8}\n"
    "  - {kind: linear, features: 8}\n  - {kind: head, classes: 4}\n";

inline Network small_network() {
  auto network = parse_network(text_source("n.network.yaml", kSmallNetwork));
  REQUIRE(network);
  return *std::move(network);
}

/// A scenario that was calibrated at pace 1. The costs decide its plan.
inline Scenario calibrated(const std::string& schedule, int batch = 4, int devices_of_all = 2,
                           int copies = 1) {
  const Network network = small_network();
  Pace pace;
  InventedDevices devices(pace);
  CalibrationOptions options;
  options.batches = {4, 8};
  options.devices = 2;
  options.min_seconds = 0.02;
  options.max_seconds = 0.04;
  options.round_seconds = 0.02;
  const auto measured = measure_layers(devices, network, {}, options);
  REQUIRE(measured);
  auto calibration = calibration_of(devices, network, {}, options, *measured);
  REQUIRE_MESSAGE(calibration, (calibration ? "" : to_text(calibration.problems())));
  const TemporaryFolder folder;
  const std::string text =
      "version: 1\nmodel: {network: " + folder.file("n.network.yaml", kSmallNetwork) +
      ", profile: " + folder.file("n.profile.yaml", profile_yaml(calibration->model)) +
      "}\ncluster: {devices: " + std::to_string(devices_of_all) +
      "}\nplan: {partition: balanced, data_parallel: " + std::to_string(copies) + "}\nschedule: {" +
      schedule + ", micro_batches: 4}\ntraining: {micro_batch_size: " + std::to_string(batch) +
      "}\n";
  auto scenario = parse_scenario(std::make_shared<const Source>(Source{"s.yaml", text, ""}), {});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  return *std::move(scenario);
}

}  // namespace plumbline::test
