// Which devices a calibration measures together, and what it holds on each of them.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <tuple>

#include "calibrate/cpu/calibration.h"
#include "tests/calibrate/cpu/small_calibration.h"

namespace plumbline::test {
namespace {

/// Devices that only note who walks with whom.
class NotingDevices : public CalibrationDevices {
 public:
  /// The devices of a walk, how many of them at once, and how many micro-batches are in flight.
  using MeasuredNetwork = std::tuple<std::vector<std::uint32_t>, std::uint32_t, std::uint32_t>;

  explicit NotingDevices(bool takes_turns) : takes_turns_(takes_turns) {}
  const std::vector<MeasuredNetwork>& was_measured() const { return was_measured_; }
  /// By device.
  const StageLayers& layers() const { return layers_; }

  std::string_view backend() const override { return "noting"; }
  bool takes_turns() const override { return takes_turns_; }
  std::optional<Diagnostic> check_network_runs(const Network&, const Mark&) const override {
    return {};
  }
  std::optional<Diagnostic> check_count(std::uint32_t, const Mark&) const override { return {}; }
  std::optional<Bytes> available_memory() const override { return {}; }
  CalibrationHead head() const override { return {}; }
  std::map<std::string, std::string> provenance(std::uint32_t) const override { return {}; }
  Overheads overheads(const Network&, const CalibrationOptions&) override { return {}; }
  std::unique_ptr<StageTimers> timers(const Network&, const StageLayers& layers,
                                      const CalibrationOptions&, std::int64_t) override {
    layers_ = layers;
    return std::make_unique<Noting>(was_measured_);
  }

 private:
  class Noting : public StageTimers {
   public:
    explicit Noting(std::vector<MeasuredNetwork>& was_measured) : was_measured_(was_measured) {}
    RealTime warm_up(bool) const override { return 0; }
    void start(const std::vector<std::uint32_t>& devices, std::uint32_t at_once,
               std::uint32_t in_flight, Duration, std::vector<StageSamples>&) override {
      was_measured_.emplace_back(devices, at_once, in_flight);
    }
    void count_from(RealTime) override {}
    void go_on() override {}
    void stop() override {}
    bool all_done() const override { return true; }
    std::size_t min_turns() const override { return 1; }
    std::size_t cycle() const override { return 1; }
    const std::vector<PassTimes>& was_measured(std::uint32_t) const override { return none_; }

   private:
    std::vector<MeasuredNetwork>& was_measured_;
    std::vector<PassTimes> none_;
  };

  bool takes_turns_;
  std::vector<MeasuredNetwork> was_measured_;
  StageLayers layers_;
};

TEST_CASE("with four devices all walk, and between that one, two and three at a time, or in crews" *
          doctest::test_suite("measures")) {
  CalibrationOptions options = quick();
  options.devices = 4;
  options.max_seconds = 1e-9;  // one round of all, then the crews that are left
  const NotingDevices::MeasuredNetwork all = {{0, 1, 2, 3}, 4, 5};
  const NotingDevices::MeasuredNetwork one_in_flight = {{0, 1, 2, 3}, 4, 1};
  NotingDevices in_turns(true);
  REQUIRE(measure_layers(in_turns, small_network(), {}, options));
  CHECK(in_turns.was_measured() ==
        std::vector<NotingDevices::MeasuredNetwork>{
            all, one_in_flight, {{0, 1, 2, 3}, 1, 5}, {{0, 1, 2, 3}, 2, 5}, {{0, 1, 2, 3}, 3, 5}});
  NotingDevices in_active_sets(false);
  REQUIRE(measure_layers(in_active_sets, small_network(), {}, options));
  CHECK(in_active_sets.was_measured() ==
        std::vector<NotingDevices::MeasuredNetwork>{all,
                                                    one_in_flight,
                                                    {{0}, 1, 5},
                                                    {{1}, 1, 5},
                                                    {{2}, 1, 5},
                                                    {{3}, 1, 5},
                                                    {{0, 1}, 2, 5},
                                                    {{2, 3}, 2, 5},
                                                    {{0, 1, 2}, 3, 5},
                                                    {{3, 0, 1}, 3, 5}});
}

TEST_CASE("devices hold the same part in each copy, and what they say of it is one answer" *
          doctest::test_suite("measures")) {
  const Network network = small_network();  // linear, relu | linear, gelu, head
  CalibrationOptions options = quick();
  options.devices = 4;
  options.max_seconds = 1e-9;
  NotingDevices devices(true);
  const auto held = [&](std::uint32_t copies) {
    options.copies = copies;
    REQUIRE(measure_layers(devices, network, {}, options));
    return devices.layers();
  };
  CHECK(held(2) == StageLayers{{0, 1}, {0, 1}, {2, 4}, {2, 4}});
  CHECK(held(4) == StageLayers{{0, 4}, {0, 4}, {0, 4}, {0, 4}});
  options.copies = 3;
  const auto uneven = check_calibration(devices, network, {}, options);
  REQUIRE(uneven);
  CHECK(uneven->message == "3 copies on 4 devices");
  options.copies = 2;
  options.devices = 12;
  const auto too_many = check_calibration(devices, network, {}, options);
  REQUIRE(too_many);
  CHECK(too_many->message == "6 devices of each copy, but the network 'small' has 5 layers");

  options.devices = 4;
  Measured measured;
  BatchSamples& samples = measured.batches.emplace_back();
  samples.batch = 8;
  const auto stages = [](std::int64_t a, std::int64_t b) {
    return std::vector<StageSamples>{made_stage(2, a), made_stage(2, a + 200), made_stage(3, b),
                                     made_stage(3, b + 400)};
  };
  samples.stages = stages(900, 1800);
  samples.beside[0] = stages(700, 1800);
  samples.alone_in_flight = stages(500, 1300);
  const auto made = calibration_of(network, {}, options, measured);
  REQUIRE(made);
  const Profile& profile = made->model.profile;
  const auto& layers = profile.measurements.front().layers;
  REQUIRE(layers.size() == 5);
  for (std::size_t i = 0; i < 5; ++i)
    CHECK(layers[i].forward.mean == Duration{i < 2 ? 1000 : 2000});
  REQUIRE(profile.blocks.size() == 2);
  CHECK(profile.blocks[1].forward == Duration{6000});
  CHECK(made->slowdown.at("linear").front() == doctest::Approx(2800.0 / 3000));
  CHECK(made->slowdown.at("linear").size() == 4);  // by the neighbours of a device
  CHECK(made->in_flight.at("relu").front() == doctest::Approx(0.6));
  CHECK(made->passes == 40);
  CHECK(profile.provenance.at("copies") == "2");
}

}  // namespace
}  // namespace plumbline::test
