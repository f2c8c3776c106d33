// Layers timed again on devices whose pace is set: what is found is that pace.
//
// SPDX-License-Identifier: MIT
#include "calibrate/measure/recalibration.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "models/network/network_reader.h"
#include "models/profile/profile_writer.h"
#include "sim/planning/predict.h"
#include "tests/support/temporary_folder.h"

namespace plumbline::test {
namespace {

/// What invented devices do; tests change it between walks.
struct Pace {
  double now = 1;             ///< Of all layers.
  double first_layer = 1;     ///< Besides.
  double alone = 1;           ///< While not all of them work.
  double one_in_flight = 1;   ///< With one micro-batch in flight.
  bool is_disturbed = false;  ///< Other work takes the devices away in every pass.
  int opened = 0;
  int measured_passes = 0;
  StageLayers held;                               ///< By device, in the last walk.
  std::map<std::string, std::string> provenance;  ///< Of the devices.
  std::map<std::string, std::string> algorithms;  ///< That they were given last.
};

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

constexpr const char* kNetwork =
    "version: 1\nkind: network\nname: small\ninput: {shape: [8]}\nlayers:\n"
    "  - {kind: linear, features: 8}\n  - {kind: linear, features: 8}\n"
    "  - {kind: linear, features: 8}\n  - {kind: head, classes: 4}\n";

Recalibrations recalibrations_at(Pace& pace) {
  return Recalibrations(
      [&pace](const Network&,
              const CalibrationOptions&) -> Result<std::unique_ptr<CalibrationDevices>> {
        return std::unique_ptr<CalibrationDevices>(std::make_unique<InventedDevices>(pace));
      },
      0.03);
}

/// A scenario that was calibrated at pace 1, with a plan that costs decide.
Scenario calibrated(const std::string& schedule, int batch = 4, int devices_of_all = 2,
                    int copies = 1) {
  const auto network =
      parse_network(std::make_shared<const Source>(Source{"n.network.yaml", kNetwork, ""}));
  REQUIRE(network);
  Pace pace;
  InventedDevices devices(pace);
  CalibrationOptions options;
  options.batches = {4, 8};
  options.devices = 2;
  options.min_seconds = 0.02;
  options.max_seconds = 0.04;
  options.round_seconds = 0.02;
  const auto measured = measure_layers(devices, *network, {}, options);
  REQUIRE(measured);
  auto calibration = calibration_of(devices, *network, {}, options, *measured);
  REQUIRE_MESSAGE(calibration, (calibration ? "" : to_text(calibration.problems())));
  const TemporaryFolder folder;
  const std::string text =
      "version: 1\nmodel: {network: " + folder.file("n.network.yaml", kNetwork) +
      ", profile: " + folder.file("n.profile.yaml", profile_yaml(calibration->model)) +
      "}\ncluster: {devices: " + std::to_string(devices_of_all) +
      "}\nplan: {partition: balanced, data_parallel: " + std::to_string(copies) + "}\nschedule: {" +
      schedule + ", micro_batches: 4}\ntraining: {micro_batch_size: " + std::to_string(batch) +
      "}\n";
  auto scenario = parse_scenario(std::make_shared<const Source>(Source{"s.yaml", text, ""}), {});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  return *std::move(scenario);
}

Outcome predicted_of(const Scenario& scenario) {
  auto outcome = predict(scenario);
  REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
  return *std::move(outcome);
}

/// What it takes by the times of now.
double time_now(const Recalibrations& recalibrations, const Scenario& scenario) {
  const auto again = recalibrations.predict(scenario, predicted_of(scenario));
  REQUIRE_MESSAGE(again, (again ? "" : to_text(again.problems())));
  REQUIRE(*again);
  return (*again)->iteration_time_s;
}

TEST_CASE("layers timed again at another pace predict the run at that pace") {
  Pace pace;
  Recalibrations recalibrations = recalibrations_at(pace);
  const Scenario gpipe = calibrated("name: gpipe");
  const Scenario naive = calibrated("name: naive");
  REQUIRE_FALSE(recalibrations.add(gpipe, predicted_of(gpipe)));
  REQUIRE_FALSE(recalibrations.add(naive, predicted_of(naive)));
  pace.now = 1.25;
  REQUIRE_FALSE(recalibrations.measure_pass());
  CHECK(pace.measured_passes == 1);  // both runs consist of the same layers
  for (const Scenario* scenario : {&gpipe, &naive}) {
    const double before = predicted_of(*scenario).iteration_time_s;
    CHECK(time_now(recalibrations, *scenario) == doctest::Approx(1.25 * before).epsilon(1e-6));
  }
  // Another walk at another pace counts as well: what was measured lies between the two.
  pace.now = 1.75;
  REQUIRE_FALSE(recalibrations.measure_pass());
  const double before = predicted_of(gpipe).iteration_time_s;
  CHECK(time_now(recalibrations, gpipe) > 1.3 * before);
  CHECK(time_now(recalibrations, gpipe) < 1.7 * before);
  const Recalibration& one = recalibrations.of(gpipe, predicted_of(gpipe));
  CHECK(one.remark().starts_with("the layers were timed again 2 times: noise "));
  CHECK(one.calibration()->drift > 0.2);
}

TEST_CASE("what neighbours cost is timed again with every walk") {
  Pace pace;
  Recalibrations recalibrations = recalibrations_at(pace);
  const Scenario scenario = calibrated("name: naive");
  REQUIRE_FALSE(recalibrations.add(scenario, predicted_of(scenario)));
  pace.alone = 1.5;
  REQUIRE_FALSE(recalibrations.measure_pass());
  const double before = predicted_of(scenario).iteration_time_s;
  const double first = time_now(recalibrations, scenario);
  CHECK(first > 1.2 * before);  // F and B alone, the update with both at work
  pace.alone = 1;
  for (int i = 0; i < 3; ++i) REQUIRE_FALSE(recalibrations.measure_pass());
  CHECK(time_now(recalibrations, scenario) < first);
}

TEST_CASE("with one micro-batch in flight an op may take another time, which schedules feel") {
  Pace pace;
  Recalibrations recalibrations = recalibrations_at(pace);
  const Scenario naive = calibrated("name: naive");
  const Scenario gpipe = calibrated("name: gpipe");
  const Scenario one_f_one_b = calibrated("name: 1f1b");
  REQUIRE_FALSE(recalibrations.add(naive, predicted_of(naive)));
  pace.one_in_flight = 0.8;
  REQUIRE_FALSE(recalibrations.measure_pass());
  // Four in flight are as many as were walked with, and more; and one device after the other finds
  // nothing of its own in the caches.
  for (const Scenario* scenario : {&gpipe, &naive}) {
    CHECK(time_now(recalibrations, *scenario) ==
          doctest::Approx(predicted_of(*scenario).iteration_time_s).epsilon(1e-6));
  }
  const Recalibration& one = recalibrations.of(naive, predicted_of(naive));
  REQUIRE(one.calibration());
  const auto& factors = one.calibration()->model.profile.in_flight.at("linear");
  REQUIRE(factors.size() == 3);
  CHECK(factors[0] == doctest::Approx(0.8).epsilon(1e-3));
  CHECK(factors[1] == doctest::Approx(0.9).epsilon(1e-3));
  CHECK(factors[2] == 1);
  // Two in flight on the first device, one on the last, but while they are alone.
  const double before = predicted_of(one_f_one_b).iteration_time_s;
  const double now = time_now(recalibrations, one_f_one_b);
  CHECK(now < 0.95 * before);
  CHECK(now > 0.85 * before);
}

TEST_CASE("stages stay as they were planned, whatever the times of now would make of them") {
  Pace pace;
  Recalibrations recalibrations = recalibrations_at(pace);
  const Scenario scenario = calibrated("name: 1f1b");
  const Outcome predicted = predicted_of(scenario);
  REQUIRE(predicted.setup.partition.stages[0].layers.size() == 2);
  REQUIRE_FALSE(recalibrations.add(scenario, predicted));
  pace.first_layer = 20;
  REQUIRE_FALSE(recalibrations.measure_pass());
  const auto again = recalibrations.predict(scenario, predicted);
  REQUIRE(again);
  REQUIRE(*again);
  CHECK((*again)->setup.partition.stages[0].layers.size() == 2);
  CHECK((*again)->graph.activities == predicted.graph.activities);
  CHECK((*again)->iteration_time_s > 3 * predicted.iteration_time_s);
}

TEST_CASE("micro-batches of another size are layers of their own") {
  Pace pace;
  Recalibrations recalibrations = recalibrations_at(pace);
  for (const int batch : {4, 8, 4}) {
    const Scenario scenario = calibrated("name: 1f1b", batch);
    REQUIRE_FALSE(recalibrations.add(scenario, predicted_of(scenario)));
  }
  REQUIRE_FALSE(recalibrations.measure_pass());
  CHECK(pace.measured_passes == 2);
}

TEST_CASE("devices are timed with as much of the network as they hold in the run" *
          doctest::test_suite("slow")) {
  Pace pace;
  Recalibrations recalibrations = recalibrations_at(pace);
  const auto held_in = [&](const std::string& schedule, int devices, int copies) {
    const Scenario scenario = calibrated(schedule, 4, devices, copies);
    REQUIRE_FALSE(recalibrations.add(scenario, predicted_of(scenario)));
    REQUIRE_FALSE(recalibrations.measure_pass());
    return pace.held;
  };
  CHECK(held_in("name: 1f1b", 2, 1) == StageLayers{{0, 2}, {3, 3}});
  CHECK(held_in("name: 1f1b", 4, 2) == StageLayers{{0, 2}, {0, 2}, {3, 3}, {3, 3}});
  CHECK(held_in("name: chimera", 2, 1) == StageLayers{{0, 3}, {0, 3}});
  CHECK(pace.measured_passes == 6);  // one more kind of run each time
}

TEST_CASE("libraries are given the profile's algorithms where it was measured with them") {
  const std::map<std::string, std::string> chosen = {{"product 1 2 3", "7"}};
  for (const char* library : {"a library 1.0", "a library 2.0"}) {
    CAPTURE(library);
    Pace pace;
    pace.provenance = {{"device", "a device"}, {"library", library}};
    Recalibrations recalibrations = recalibrations_at(pace);
    Scenario scenario = calibrated("name: 1f1b");
    scenario.model.edit().profile.provenance["device"] = "a device";
    scenario.model.edit().profile.provenance["library"] = "a library 1.0";
    scenario.model.edit().profile.algorithms = chosen;
    REQUIRE_FALSE(recalibrations.add(scenario, predicted_of(scenario)));
    for (int measure_pass = 0; measure_pass < 2; ++measure_pass) {
      REQUIRE_FALSE(recalibrations.measure_pass());
      const bool is_same = std::string(library) == "a library 1.0";
      CHECK(pace.algorithms == (is_same ? chosen : std::map<std::string, std::string>()));
    }
  }
}

TEST_CASE("without a clean pass nothing is said of the times of now") {
  Pace pace;
  Recalibrations recalibrations = recalibrations_at(pace);
  const Scenario scenario = calibrated("name: 1f1b");
  const Outcome predicted = predicted_of(scenario);
  REQUIRE_FALSE(recalibrations.add(scenario, predicted));
  pace.is_disturbed = true;
  REQUIRE_FALSE(recalibrations.measure_pass());
  const auto again = recalibrations.predict(scenario, predicted);
  REQUIRE(again);
  CHECK_FALSE(*again);
  CHECK(recalibrations.of(scenario, predicted)
            .remark()
            .starts_with("the layers were timed again to no end: too much other work on this "
                         "machine: 0 of "));
  pace.is_disturbed = false;  // the next walk is clean
  REQUIRE_FALSE(recalibrations.measure_pass());
  CHECK(time_now(recalibrations, scenario) ==
        doctest::Approx(predicted.iteration_time_s).epsilon(1e-6));
}

TEST_CASE("a model of times alone, and more devices than layers, are refused") {
  Pace pace;
  Recalibrations recalibrations = recalibrations_at(pace);
  Scenario scenario = calibrated("name: 1f1b");
  const Outcome predicted = predicted_of(scenario);
  const auto network = scenario.network;
  scenario.network = nullptr;
  const auto refused = recalibrations.add(scenario, predicted);
  REQUIRE(refused);
  CHECK(refused->front().message == "the model is no network: it has no layers that can be timed");
  auto shorter = std::make_shared<Network>(*network);
  shorter->layers.erase(shorter->layers.begin(), shorter->layers.begin() + 3);
  scenario.network = shorter;
  const auto too_many = recalibrations.add(scenario, predicted);
  REQUIRE(too_many);
  CHECK(too_many->front().message == "2 devices, but the network 'small' has 1 layers");
  CHECK(too_many->front().help ==
        "every device has at least one layer; or leave --recalibrate out");
  CHECK_FALSE(recalibrations.measure_pass());
  CHECK(pace.measured_passes == 0);
}

}  // namespace
}  // namespace plumbline::test
