// Validations as a whole: a program's own, on the synthetic backend.
//
// SPDX-License-Identifier: MIT
#include "calibrate/validate/validate_runs.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "calibrate/runtime/synthetic.h"
#include "sim/planning/predict.h"
#include "tests/support/invented_devices.h"
#include "tests/support/temporary_folder.h"

namespace plumbline::test {
namespace {

constexpr const char* kScenario =
    "version: 1\nname: small\n"
    "model: {uniform: {layers: 2, forward: 200 us, backward: 400 us, output: 1 MiB, activation: "
    "4 MiB, parameters: 8 MiB}, batch: 8}\n"
    "cluster: {devices: 2}\nschedule: {name: gpipe, micro_batches: 2}\n";

std::vector<PlannedRun> planned_of(const std::vector<std::vector<std::string>>& combinations = {
                                       {}}) {
  const TemporaryFolder folder;
  auto planned = plan_runs({folder.file("small.yaml", kScenario)}, combinations);
  REQUIRE_MESSAGE(planned, (planned ? "" : to_text(planned.problems())));
  return *std::move(planned);
}

ValidationOptions synthetic_options() {
  ValidationOptions options;
  options.backend = [](const Scenario&) -> ValidationOptions::MadeBackend {
    return synthetic_backend({});
  };
  options.run.warm_up = 1;
  options.run.iterations = 3;
  options.run.max_iterations = 4;
  return options;
}

/// The synthetic backend, which notes how many clean iterations each of its runs is to measure.
class NotingBackend : public Backend {
 public:
  explicit NotingBackend(std::vector<std::uint32_t>& asked)
      : inner_(synthetic_backend({})), asked_(asked) {}
  std::string_view name() const override { return inner_->name(); }
  std::string device_text() const override { return inner_->device_text(); }
  bool has_own_overheads() const override { return inner_->has_own_overheads(); }
  RunResult run(const RunPlan& plan, const DeviceOrders& orders,
                const RunOptions& options) override {
    asked_.push_back(options.iterations);
    return inner_->run(plan, orders, options);
  }
  std::vector<std::unique_ptr<Worker>> workers(const RunPlan& plan) override {
    return inner_->workers(plan);
  }

 private:
  std::unique_ptr<Backend> inner_;
  std::vector<std::uint32_t>& asked_;
};

std::vector<ValidationPoint> points_of(std::vector<PlannedRun> planned,
                                       const ValidationOptions& options) {
  auto points = validate_runs(std::move(planned), options);
  REQUIRE_MESSAGE(points, (points ? "" : to_text(points.problems())));
  return *std::move(points);
}

TEST_CASE("a program validates several schedules with one call") {
  const auto points =
      points_of(planned_of({{"schedule.name=gpipe"}, {"schedule.name=1f1b"}}), synthetic_options());
  REQUIRE(points.size() == 2);
  CHECK(points[0].overrides == std::vector<std::string>{"schedule.name=gpipe"});
  CHECK(points[1].overrides == std::vector<std::string>{"schedule.name=1f1b"});
  for (const ValidationPoint& point : points) {
    const Validation& v = point.validation;
    CHECK(v.predicted_s() == doctest::Approx(0.0018));  // two micro-batches of 600 us, one to fill
    CHECK(v.measured_s() > 0.9 * v.predicted_s());
    CHECK(v.measured.backend == "synthetic");
    CHECK(v.measured.iterations.size() >= 3);
    CHECK(v.memory_verdict() != MemoryVerdict::differs);
    CHECK_FALSE(v.again_s);
  }
}

TEST_CASE("iterations are parted among rounds, and each of them is told") {
  ValidationOptions options = synthetic_options();
  options.run.iterations = 5;
  options.run.max_iterations = 3;
  options.rounds = 2;
  std::vector<std::uint32_t> asked;
  options.backend = [&](const Scenario&) -> ValidationOptions::MadeBackend {
    return std::unique_ptr<Backend>(std::make_unique<NotingBackend>(asked));
  };
  std::vector<std::size_t> runs;  // each run tells its end, and what comes before if it takes long
  options.progress = [&](const ValidationStep& step) {
    CHECK_FALSE(step.times_layers);
    CHECK(step.runs == 4);
    CHECK(step.iteration <= step.max_iterations);
    runs.push_back(step.run);
  };
  const auto points =
      points_of(planned_of({{"schedule.name=gpipe"}, {"schedule.name=1f1b"}}), options);
  CHECK(asked == std::vector<std::uint32_t>{3, 3, 3, 3});
  CHECK(std::is_sorted(runs.begin(), runs.end()));
  runs.erase(std::unique(runs.begin(), runs.end()), runs.end());
  CHECK(runs == std::vector<std::size_t>{1, 2, 3, 4});
  for (const ValidationPoint& point : points)
    CHECK(point.validation.measured.iterations.size() == 6);
}

TEST_CASE("what is wrong with a scenario or a backend is an error") {
  const auto unread = plan_runs({"no-such-file.yaml"}, {{}});
  REQUIRE_FALSE(unread);
  CHECK(unread.problems().front().fault == Fault::file);
  ValidationOptions options = synthetic_options();
  options.backend = [](const Scenario&) -> ValidationOptions::MadeBackend {
    return input_error({}, "there is none");
  };
  const auto refused = validate_runs(planned_of(), options);
  REQUIRE_FALSE(refused);
  CHECK(refused.problems().front().message == "there is none");
}

TEST_CASE("layers are timed before the first round and after each") {
  Pace pace;
  ValidationOptions options = synthetic_options();
  options.rounds = 2;
  options.devices = invented_devices(pace);
  options.pass_seconds = 0.02;
  int told = 0;
  options.progress = [&](const ValidationStep& step) { told += step.times_layers ? 1 : 0; };
  const Scenario scenario = calibrated("name: gpipe");
  auto prediction = predict(scenario);
  REQUIRE(prediction);
  std::vector<PlannedRun> planned;
  planned.push_back({scenario, *std::move(prediction), {}});
  pace.now = 1.25;  // since it was calibrated
  const auto points = points_of(std::move(planned), options);
  CHECK(pace.measured_passes == 3);
  CHECK(told == 3);
  const Validation& v = points.front().validation;
  REQUIRE(v.again_s);
  CHECK(*v.again_s == doctest::Approx(1.25 * v.predicted_s()).epsilon(1e-6));
  CHECK(v.measured.remarks.back().starts_with("the layers were timed again 3 times: "));
}

TEST_CASE("layers that can no longer be timed leave the runs as they are, with a remark") {
  Pace pace;
  ValidationOptions options = synthetic_options();
  options.rounds = 3;
  options.pass_seconds = 0.02;
  int refusals = 0;
  options.devices =
      [&](const Network& network,
          const CalibrationOptions& calibration) -> Result<std::unique_ptr<CalibrationDevices>> {
    if (pace.measured_passes > 0) ++refusals;
    if (pace.measured_passes > 0) return input_error({}, "they are gone");
    return invented_devices(pace)(network, calibration);
  };
  const Scenario scenario = calibrated("name: gpipe");
  auto prediction = predict(scenario);
  REQUIRE(prediction);
  std::vector<PlannedRun> planned;
  planned.push_back({scenario, *std::move(prediction), {}});
  const auto points = points_of(std::move(planned), options);
  const auto& remarks = points.front().validation.measured.remarks;
  CHECK(std::count(remarks.begin(), remarks.end(),
                   "the layers were timed no more: they are gone") == 1);
  CHECK(refusals == 1);  // they are not asked for again
  // A model of times alone has no layers: that is told before anything runs.
  options.backend = [](const Scenario&) -> ValidationOptions::MadeBackend {
    FAIL("a run began");
    return synthetic_backend({});
  };
  const auto refused = validate_runs(planned_of(), options);
  REQUIRE_FALSE(refused);
  CHECK(refused.problems().front().message.starts_with("the model is no network"));
}

}  // namespace
}  // namespace plumbline::test
