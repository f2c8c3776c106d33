// Real runs and calibrations of the facade.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <plumbline/measure.h>

#include <cmath>
#include <string>

namespace plumbline::test {
namespace {

v1::Backend synthetic() {
  v1::Backend backend;
  backend.name = "synthetic";
  return backend;
}

TEST_CASE("a wrong backend, and nothing to measure") {
  v1::Backend gpu;
  gpu.name = "gpu";
  const auto wrong = v1::validate({"examples/four-stages.yaml"}, {}, gpu);
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().problems.front().help == "did you mean 'cuda'?");
  CHECK_FALSE(v1::validate({}, {}, synthetic()));
  v1::ValidationLimits none;
  none.iterations = 0;
  CHECK_FALSE(v1::validate({"examples/four-stages.yaml"}, {}, synthetic(), none));
  none.iterations = 1;
  none.recalibrate = true;
  CHECK_FALSE(v1::validate({"examples/four-stages.yaml"}, {}, synthetic(), none));
  CHECK_FALSE(v1::validate({"nowhere.yaml"}, {}, synthetic()));
  CHECK_FALSE(v1::calibrate("examples/networks/mlp.network.yaml", synthetic()));
  CHECK_FALSE(v1::calibrate("nowhere.yaml"));
  v1::CalibrationLimits limits;
  limits.batches = {0};
  CHECK_FALSE(v1::calibrate("examples/networks/mlp.network.yaml", {}, limits));
  limits.batches = {8};
  limits.min_seconds = 30;
  CHECK_FALSE(v1::calibrate("examples/networks/mlp.network.yaml", {}, limits));
  none.recalibrate = false;
  none.tolerance = std::nan("");
  CHECK_FALSE(v1::validate({"examples/four-stages.yaml"}, {}, synthetic(), none));
}

TEST_SUITE("measures") {
  TEST_CASE("two schedules are run for real beside their predictions") {
    v1::ValidationLimits limits;
    limits.iterations = 3;
    std::size_t last = 0;
    limits.progress = [&](std::size_t run, std::size_t runs, std::uint32_t iteration) {
      CHECK(iteration > 0);
      CHECK(runs == 2);
      last = run;
      return true;
    };
    const auto validation = v1::validate({"examples/four-stages.yaml"},
                                         {"schedule.name=gpipe,1f1b"}, synthetic(), limits);
    REQUIRE_MESSAGE(validation, (validation ? "" : validation.error().text));
    REQUIRE(validation->runs.size() == 2);
    CHECK(last == 2);
    CHECK(validation->runs[0].settings == v1::Settings{"schedule.name=gpipe"});
    CHECK(validation->runs[0].predicted_s == doctest::Approx(0.033));
    if (validation->runs[0].measured_s) CHECK(*validation->runs[0].measured_s > 0.032);
    CHECK(validation->text.find("gpipe") != std::string::npos);
    CHECK(std::string(v1::name(v1::Verdict::inconclusive)) == "INCONCLUSIVE");
  }

  TEST_CASE("real runs are given up when their progress says so") {
    v1::ValidationLimits limits;
    limits.iterations = 1000;
    std::uint32_t told = 0;
    limits.progress = [&](std::size_t, std::size_t, std::uint32_t iteration) {
      told = iteration;
      return false;
    };
    const auto text = v1::Input::of_text(
        "version: 1\nmodel: {uniform: {layers: 2, forward: 1 ms, backward: 2 ms}}\n"
        "cluster: {devices: 2}\nschedule: {name: gpipe, micro_batches: 2}\n");
    const auto validation = v1::validate({text}, {}, synthetic(), limits);
    REQUIRE_FALSE(validation);
    CHECK(validation.error().problems.front().fault == v1::Fault::stopped);
    CHECK(told > 0);
    CHECK(told < 100);
  }

  TEST_CASE("a calibration makes a profile, or is given up") {
    v1::CalibrationLimits limits;
    limits.min_seconds = 0.2;
    limits.max_seconds = 1;
    const auto profile = v1::calibrate("examples/networks/mlp.network.yaml", {}, limits);
    if (!profile) {  // a build without oneDNN, or a machine too busy to measure on
      const std::string& text = profile.error().text;
      CHECK_MESSAGE(
          (text.find("oneDNN") != std::string::npos || text.find("clean") != std::string::npos),
          text);
      return;
    }
    CHECK(profile->yaml.find("kind: profile") != std::string::npos);
    CHECK(profile->yaml.find("tool: plumbline") != std::string::npos);
    limits.progress = [](const std::string&, double) { return false; };
    const auto stopped = v1::calibrate("examples/networks/mlp.network.yaml", {}, limits);
    REQUIRE_FALSE(stopped);
    CHECK(stopped.error().problems.front().fault == v1::Fault::stopped);
  }
}

}  // namespace
}  // namespace plumbline::test
