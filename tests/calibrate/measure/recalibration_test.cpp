// Layers timed again on devices whose pace is set: what is found is that pace.
//
// SPDX-License-Identifier: MIT
#include "calibrate/measure/recalibration.h"

#include <doctest/doctest.h>

#include "sim/planning/predict.h"
#include "tests/support/invented_devices.h"

namespace plumbline::test {
namespace {

Recalibrations recalibrations_at(Pace& pace) {
  return Recalibrations(invented_devices(pace), 0.03);
}

Outcome predicted_of(const Scenario& scenario) {
  auto outcome = predict(scenario);
  REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
  return *std::move(outcome);
}

/// The iteration time with the times measured now.
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
