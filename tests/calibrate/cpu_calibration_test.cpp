// What a calibration must satisfy on any machine: laws, not speeds.
// SPDX-License-Identifier: MIT
#include "calibrate/cpu_calibration.h"

#include <doctest/doctest.h>

#include <cmath>

#include "calibrate/cpu_layer.h"
#include "calibrate/overheads.h"
#include "models/network_reader.h"
#include "models/profile_reader.h"
#include "models/profile_writer.h"

namespace plumbline::test {
namespace {

Network small_network() {
  const std::string text =
      "version: 1\nkind: network\nname: small\ninput: {shape: [64]}\nlayers:\n"
      "  - {kind: linear, features: 256}\n  - {kind: relu}\n  - {kind: linear, features: 256}\n"
      "  - {kind: gelu}\n  - {kind: head, classes: 10}\n";
  const auto network =
      parse_network(std::make_shared<const Source>(Source{"small.network.yaml", text, ""}));
  REQUIRE(network);
  return *network;
}

CalibrationOptions quick() {
  CalibrationOptions options;
  options.least_seconds = 0.05;
  options.most_seconds = 0.3;
  return options;
}

bool has_backend() {
  if (!cpu_library().empty()) return true;
  MESSAGE("skipped: this build has no oneDNN");
  return false;
}

TEST_CASE("a calibration times every pass of every layer, and its profile can be read back") {
  if (!has_backend()) return;
  const Network network = small_network();
  CalibrationOptions options = quick();
  options.batches = {8, 2};
  const auto calibration = calibrate_cpu(network, {}, options);
  if (!calibration) {
    MESSAGE("inconclusive: " << calibration.problems().front().message);
    return;
  }
  const Model& model = calibration->model;
  REQUIRE(model.profile.measurements.size() == 2);
  CHECK(model.profile.measurements[0].batch == 2);  // ascending
  CHECK(model.profile.measurements[1].batch == 8);
  CHECK(calibration->passes > 0);
  CHECK(calibration->dropped >= 0);
  CHECK(calibration->dropped < 1);
  for (const Measurement& measurement : model.profile.measurements) {
    REQUIRE(measurement.layers.size() == network.layers.size());
    for (std::size_t i = 0; i < network.layers.size(); ++i) {
      const NetworkLayer& layer = network.layers[i];
      const LayerCosts& costs = measurement.layers[i];
      CAPTURE(layer.name);
      CHECK(costs.forward.mean.count() > 0);
      CHECK(costs.backward.mean.count() > 0);
      CHECK(costs.forward.samples.value_or(0) > 0);
      CHECK(costs.split.has_value() == layer.splits);
      CHECK((costs.update.mean.count() > 0) == (layer.parameter_count() > 0));
      CHECK(costs.output == output_bytes(network, layer, *measurement.batch));
      CHECK(costs.activation == activation_bytes(network, layer, *measurement.batch));
      CHECK(model.graph.layer({static_cast<std::uint32_t>(i)}).parameters ==
            parameter_bytes(network, layer));
    }
  }
  const auto read =
      parse_profile(std::make_shared<const Source>(Source{"p.yaml", profile_yaml(model), ""}));
  REQUIRE_MESSAGE(read, (read ? "" : to_text(read.problems())));
  CHECK(profile_yaml(*read) == profile_yaml(model));
}

TEST_CASE("the layers of a calibrated stage add up to its pass") {
  if (!has_backend()) return;
  const auto calibration = calibrate_cpu(small_network(), {}, quick());
  if (!calibration) {
    MESSAGE("inconclusive: " << calibration.problems().front().message);
    return;
  }
  const Profile& profile = calibration->model.profile;
  REQUIRE(profile.blocks.size() == 1);
  const auto sum = [&](auto&& time) {
    double all = 0;
    for (const LayerCosts& layer : profile.measurements.front().layers)
      all += seconds(time(layer).mean);
    return all;
  };
  // The stamps telescope, so sums differ from the whole by their trimming alone.
  const double forward = sum([](const LayerCosts& layer) { return layer.forward; });
  const double backward = sum([](const LayerCosts& layer) { return layer.backward; });
  CHECK(forward / seconds(profile.blocks[0].forward) == doctest::Approx(1).epsilon(0.1));
  CHECK(backward / seconds(profile.blocks[0].backward) == doctest::Approx(1).epsilon(0.1));
}

TEST_CASE("more devices than cores or layers, and networks that do not run, are refused") {
  if (!has_backend()) return;
  Network network = small_network();
  CalibrationOptions options = quick();
  options.devices = 1024;
  CHECK_FALSE(calibrate_cpu(network, {}, options));
  options.devices = static_cast<std::uint32_t>(network.layers.size()) + 1;
  CHECK_FALSE(calibrate_cpu(network, {}, options));
  network.layers.pop_back();
  const auto refused = calibrate_cpu(network, {}, quick());
  REQUIRE_FALSE(refused);
  CHECK(refused.problems().front().message ==
        "the network 'small' does not end in a head, so it has no loss");
}

TEST_CASE("the runner's own overheads are measured and are no milliseconds") {
  const Overheads overheads = measure_overheads();
  CHECK(overheads.per_op.count() > 0);
  CHECK(overheads.hand_over.count() >= 0);
  CHECK(overheads.per_op < std::chrono::milliseconds(5));
  CHECK(overheads.hand_over < std::chrono::milliseconds(5));
}

}  // namespace
}  // namespace plumbline::test
