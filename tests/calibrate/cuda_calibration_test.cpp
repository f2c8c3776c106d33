// Calibrating on CUDA devices without a GPU: the clock is a test's, so times are known exactly.
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/cuda/calibration.h"
#include "models/network_reader.h"
#include "tests/support/emulated_kernels.h"
#include "tests/support/fake_cuda.h"

namespace plumbline::test {
namespace {

Network small_network() {
  const auto network = parse_network(std::make_shared<const Source>(
      Source{"n.network.yaml",
             "version: 1\nkind: network\nname: n\ninput: {shape: [6]}\nlayers:\n"
             "  - {kind: linear, features: 5}\n  - {kind: relu}\n  - {kind: gelu}\n"
             "  - {kind: head, classes: 3, norm: false}\n",
             ""}));
  REQUIRE(network);
  return *network;
}

CudaCalibrationOptions own() {
  CudaCalibrationOptions options;
  options.own_products = true;
  options.warm_up_seconds = 0.01;
  return options;
}

CalibrationOptions short_time(std::uint32_t devices, std::vector<std::int64_t> batches) {
  CalibrationOptions options;
  options.devices = devices;
  options.batches = std::move(batches);
  options.least_seconds = 0.2;
  options.most_seconds = 1;
  return options;
}

std::int64_t ns(Duration time) { return time.count(); }

TEST_CASE("cuda: a calibration finds the times of the kernels, exactly") {
  FakeCuda fake;
  fake.add(emulated_kernels());
  fake.set_duration("plumbline_relu_f32", 7000);
  fake.set_duration("plumbline_relu_gradient_f32", 9000);
  fake.set_duration("plumbline_gelu_f32", 11'000);
  fake.set_duration("plumbline_gelu_gradient_f32", 13'000);
  const Network network = small_network();
  {
    auto devices = cuda_calibration_devices(fake.driver(), 2, own());
    REQUIRE(devices);
    const CalibrationOptions options = short_time(2, {2, 3});
    REQUIRE_FALSE(refuse_calibration(**devices, network, {}, options));
    const auto measured = measure_layers(**devices, network, {}, options);
    REQUIRE_MESSAGE(measured, (measured ? "" : to_text(measured.problems())));
    CHECK_FALSE(measured->interrupted);
    const auto calibration = calibration_of(**devices, network, {}, options, *measured);
    REQUIRE_MESSAGE(calibration, (calibration ? "" : to_text(calibration.problems())));
    CHECK(calibration->dropped == 0);
    CHECK(calibration->noise == 0);
    CHECK(calibration->drift == 0);
    const Profile& profile = calibration->model.profile;
    REQUIRE(profile.measurements.size() == 2);
    for (const Measurement& measurement : profile.measurements) {
      REQUIRE(measurement.layers.size() == 4);
      const LayerCosts& relu = measurement.layers[1];
      CHECK(ns(relu.forward.mean) == 7000);
      CHECK(ns(relu.backward.mean) == 9000);
      const LayerCosts& gelu = measurement.layers[2];
      CHECK(ns(gelu.forward.mean) == 11'000);
      CHECK(ns(gelu.backward.mean) == 13'000);
      // Whole microseconds, as every other kernel takes one; W is what B has beyond I.
      const LayerCosts& linear = measurement.layers[0];
      CHECK(ns(linear.forward.mean) > 0);
      REQUIRE(linear.split);
      CHECK(ns(linear.split->input.mean) + ns(linear.split->weight.mean) ==
            ns(linear.backward.mean));
      CHECK(ns(linear.update.mean) > 1000);
    }
    CHECK(profile.provenance.at("backend") == "cuda");
    CHECK(profile.provenance.at("device") == "Fake H100");
    CHECK(profile.provenance.at("sms") == "64");
    CHECK(profile.provenance.at("busy_devices") == "2");
    CHECK(profile.provenance.count("split") == 1);
    const Overheads overheads = (*devices)->overheads();
    CHECK(overheads.per_op == Duration{});
    CHECK(overheads.hand_over == Duration{});
  }
  CHECK(fake.faults() == std::vector<std::string>{});
  CHECK(fake.live() == "");
}

TEST_CASE("cuda: a calibration that was interrupted goes on where it stopped") {
  FakeCuda fake;
  fake.add(emulated_kernels());
  const Network network = small_network();
  auto devices = cuda_calibration_devices(fake.driver(), 1, own());
  REQUIRE(devices);
  CalibrationOptions options = short_time(1, {2});
  const CalibrationHead head = calibration_head(**devices, network, options, "plumbline 1");
  CHECK(head[6] == std::pair<std::string, std::string>{"backend", "cuda"});
  CHECK(head.back() == std::pair<std::string, std::string>{"tool", "plumbline 1"});
  std::vector<KeptRound> rounds;
  bool is_over = false;
  options.keep = [&](const KeptRound& round) -> std::optional<Diagnostic> {
    rounds.push_back(round);
    return std::nullopt;
  };
  int asked = 0;
  options.interrupted = [&] { return ++asked > 5 || is_over; };
  const auto first = measure_layers(**devices, network, {}, options);
  REQUIRE(first);
  CHECK(first->interrupted);
  REQUIRE(rounds.size() == 1);
  CHECK_FALSE(rounds.front().passes.empty());
  options.kept.rounds = rounds;
  options.interrupted = nullptr;
  const auto second = measure_layers(**devices, network, {}, options);
  REQUIRE(second);
  CHECK_FALSE(second->interrupted);
  CHECK(second->batches.front().passes() > static_cast<std::int64_t>(rounds.front().passes.size()));
}

TEST_CASE("cuda: what cannot be calibrated is told") {
  FakeOptions small;
  small.gpus.front().memory = 1 << 20;
  FakeCuda fake(small);
  fake.add(emulated_kernels());
  const Network network = small_network();
  const auto devices = cuda_calibration_devices(fake.driver(), 1, own());
  REQUIRE(devices);
  const auto large = refuse_calibration(**devices, network, {}, short_time(1, {100'000}));
  REQUIRE(large);
  CHECK(large->fault == Fault::infeasible);
  CHECK(large->message.find("micro-batches of 100000 samples take") == 0);
  const auto many = refuse_calibration(**devices, network, {}, short_time(5, {1}));
  REQUIRE(many);
  CHECK(many->message == "5 devices, but the network 'n' has 4 layers");
  const auto none = cuda_calibration_devices(fake.driver(), 1000, own());
  REQUIRE_FALSE(none);
  CHECK(none.problems().front().fault == Fault::no_device);
}

}  // namespace
}  // namespace plumbline::test
