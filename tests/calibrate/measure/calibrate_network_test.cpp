// Calibrations as a whole, on devices whose pace is set: kept, interrupted, gone on with.
//
// SPDX-License-Identifier: MIT
#include "calibrate/measure/calibrate_network.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <stdexcept>

#include "tests/support/invented_devices.h"
#include "tests/support/temporary_folder.h"

namespace plumbline::test {
namespace {

CalibrationOptions short_options() {
  CalibrationOptions options;
  options.batches = {4};
  options.devices = 2;
  options.min_seconds = 0.02;
  options.max_seconds = 0.04;
  options.round_seconds = 0.02;
  return options;
}

CalibrationRun run_of(CalibrationDevices& devices, const CalibrationOptions& options,
                      const CalibrationHead& head, CalibrationFile& file) {
  auto run = calibrate_network(devices, small_network(), options, head, &file);
  REQUIRE_MESSAGE(run, (run ? "" : to_text(run.problems())));
  return *std::move(run);
}

TEST_CASE("a calibration by one call has the devices' times in its profile") {
  Pace pace;
  pace.now = 1.5;
  InventedDevices devices(pace);
  const auto run = calibrate_network(devices, small_network(), short_options());
  REQUIRE_MESSAGE(run, (run ? "" : to_text(run.problems())));
  REQUIRE(run->calibration);
  CHECK(run->passes > 0);
  CHECK(run->resumed == 0);
  const Profile& profile = run->calibration->model.profile;
  REQUIRE(profile.measurements.size() == 1);
  CHECK(profile.measurements.front().layers.front().forward.mean == Duration{150'000});
  CHECK(profile.overheads);
}

TEST_CASE("a calibration that was interrupted goes on from its file") {
  const TemporaryFolder folder;
  Pace pace;
  InventedDevices devices(pace);
  CalibrationOptions options = short_options();
  const CalibrationHead head = calibration_head(devices, small_network(), options, "a tool");
  std::size_t kept = 0;
  {
    CalibrationFile file(folder["profile.yaml"]);
    bool has_a_round = false;
    options.keep = [&](const KeptRound&) -> std::optional<Diagnostic> {
      has_a_round = true;
      return std::nullopt;
    };
    options.interrupted = [&] { return has_a_round; };
    const CalibrationRun run = run_of(devices, options, head, file);
    CHECK_FALSE(run.calibration);
    CHECK(file.holds_something());
    kept = run.passes;
  }
  CHECK(kept > 0);
  options = short_options();
  CalibrationFile file(folder["profile.yaml"]);
  auto before = file.resume();
  REQUIRE_MESSAGE(before, (before ? "" : to_text(before.problems())));
  REQUIRE(*before);
  CHECK((*before)->passes() == kept);
  options.kept = **std::move(before);
  const CalibrationRun run = run_of(devices, options, head, file);
  CHECK(run.calibration);
  CHECK(run.passes > kept);
  CHECK(run.resumed == 1);
  file.remove();
  CHECK_FALSE(std::filesystem::exists(file.path()));
}

TEST_CASE("what came to nothing leaves no file, and a round that cannot be kept ends it") {
  const TemporaryFolder folder;
  Pace pace;
  pace.is_disturbed = true;
  InventedDevices devices(pace);
  CalibrationFile file(folder["profile.yaml"]);
  const auto run = calibrate_network(devices, small_network(), short_options(), {}, &file);
  REQUIRE_FALSE(run);
  CHECK(run.problems().front().message.starts_with("too much other work on this machine"));
  CHECK_FALSE(std::filesystem::exists(file.path()));
  pace.is_disturbed = false;
  CalibrationFile nowhere(folder["no-folder/profile.yaml"]);
  const auto unkept = calibrate_network(devices, small_network(), short_options(), {}, &nowhere);
  REQUIRE_FALSE(unkept);
  CHECK(unkept.problems().front().fault == Fault::file);
}

/// Devices that fail once they are to work.
class FailingDevices : public InventedDevices {
 public:
  using InventedDevices::InventedDevices;
  std::unique_ptr<StageTimers> timers(const Network&, const StageLayers&, const CalibrationOptions&,
                                      std::int64_t) override {
    throw std::runtime_error("it is gone");
  }
};

TEST_CASE("a device that fails is an error") {
  Pace pace;
  FailingDevices devices(pace);
  const auto run = calibrate_network(devices, small_network(), short_options());
  REQUIRE_FALSE(run);
  CHECK(run.problems().front().message == "it is gone");
  CHECK(run.problems().front().fault == Fault::infeasible);
}

}  // namespace
}  // namespace plumbline::test
