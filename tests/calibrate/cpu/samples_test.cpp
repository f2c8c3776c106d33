// What a calibration makes of its samples, which are made here.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "calibrate/cpu/calibration.h"
#include "models/profile/profile_reader.h"
#include "models/profile/profile_writer.h"
#include "tests/calibrate/cpu/small_calibration.h"

namespace plumbline::test {
namespace {

/// Samples of a batch: two clean passes of each kind, but for `missing`, whose passes are dropped.
BatchSamples made_samples(std::int64_t batch, std::int64_t ns, std::optional<Pass> missing = {}) {
  StopLimits limits;
  limits.max_samples = 100;
  limits.max_time = std::chrono::seconds(1);
  BatchSamples samples;
  samples.batch = batch;
  samples.stages.emplace_back(5, limits);
  for (const Pass pass : kAllPasses) {
    const bool is_clean = pass != missing;
    for (int i = 0; i < 2; ++i) {
      samples.stages[0].add(
          {pass, is_clean ? std::vector<std::int64_t>(5, ns) : std::vector<std::int64_t>{}}, {});
    }
  }
  return samples;
}

TEST_CASE("the updates of a stage add up to its piece, and layers without parameters have none" *
          doctest::test_suite("measures")) {
  const Network network = small_network();  // linear, relu, linear, gelu, head
  Measured measured;
  measured.batches = {made_samples(8, 40)};
  StageSamples& stage = measured.batches[0].stages[0];
  for (int i = 0; i < 2; ++i) stage.add({Pass::update, {75}}, {});
  const auto made = calibration_of(network, {}, {}, measured);
  REQUIRE(made);
  const auto& layers = made->model.profile.measurements.front().layers;
  REQUIRE(layers.size() == 5);
  for (const std::size_t with : {0, 2, 4}) CHECK(layers[with].update.mean == Duration{25});
  for (const std::size_t without : {1, 3}) CHECK(layers[without].update.mean == Duration{});
}

TEST_CASE("the slow-down of a kind is its time with fewer neighbours against that with all" *
          doctest::test_suite("measures")) {
  const Network network = small_network();  // linear, relu | linear, gelu | head
  Measured measured;
  BatchSamples& samples = measured.batches.emplace_back();
  samples.batch = 8;
  const auto stages = [](std::int64_t a, std::int64_t b, std::int64_t c) {
    return std::vector<StageSamples>{made_stage(2, a), made_stage(1, b), made_stage(1, b),
                                     made_stage(1, c)};
  };
  samples.stages = stages(1000, 2000, 1000);
  samples.beside[0] = stages(800, 1900, 1000);
  samples.beside[1] = stages(900, 2000, 1004);
  const auto made = calibration_of(network, {}, {}, measured);
  REQUIRE(made);
  const auto is = [](const std::vector<double>& factors, const std::vector<double>& wanted) {
    REQUIRE(factors.size() == wanted.size());
    for (std::size_t k = 0; k < wanted.size(); ++k) CHECK(factors[k] == doctest::Approx(wanted[k]));
  };
  // The two linear layers stand on two devices: (800 + 1900) / (1000 + 2000). Two neighbours were
  // not measured: between one and three.
  is(made->slowdown.at("linear"), {0.9, 2900.0 / 3000, (1 + 2900.0 / 3000) / 2, 1});
  is(made->slowdown.at("relu"), {0.8, 0.9, 0.95, 1});
  is(made->slowdown.at("head"), {1, 1.004, 1.002, 1});
  // Updates of all at once take half as long again as among others; with fewer, it is between.
  CHECK_FALSE(made->updates_at_once);
  auto with_updates = measured;
  for (StageSamples& stage : with_updates.batches[0].stages) {
    PassTimes times{Pass::update_at_once, {}};
    for (std::size_t i = 0; i < stage.layers(); ++i)
      times.layers.push_back(std::llround(1.5 * stage.of_layer(Pass::update, i).front()));
    for (int i = 0; i < 4; ++i) stage.add(times, {});
  }
  const auto at_once = calibration_of(network, {}, {}, with_updates);
  REQUIRE(at_once);
  is(at_once->model.profile.slowdown.at("update"), {1, 1 + 0.5 / 3, 1 + 1.0 / 3, 1.5});
  CalibrationOptions without_slowdown;
  without_slowdown.slowdown = false;
  const auto not_asked = calibration_of(network, {}, without_slowdown, with_updates);
  REQUIRE(not_asked);
  CHECK_FALSE(not_asked->model.profile.slowdown.contains("update"));
  // An effect that noise can explain does not go into the profile.
  CHECK(made->model.profile.slowdown.contains("linear"));
  CHECK(made->model.profile.slowdown.contains("gelu"));
  CHECK_FALSE(made->model.profile.slowdown.contains("head"));
  const auto read_back = parse_profile(
      std::make_shared<const Source>(Source{"made.profile.yaml", profile_yaml(made->model), ""}));
  REQUIRE(read_back);
  is(read_back->profile.slowdown.at("relu"), {0.8, 0.9, 0.95, 1});

  // Nor does what is less than the noise and the drift of the calibration.
  auto drifting = measured;
  StageSamples& last = drifting.batches[0].stages[3];
  for (int i = 0; i < 4; ++i) last.add({Pass::forward, {i < 2 ? 1000 : 1120}}, {});
  const auto rough = calibration_of(network, {}, {}, drifting);
  REQUIRE(rough);
  CHECK(rough->min_slowdown() == doctest::Approx(2 * std::max(rough->noise, rough->drift)));
  CHECK(rough->slowdown.at("linear").front() == doctest::Approx(0.9));
  CHECK_FALSE(rough->model.profile.slowdown.contains("linear"));

  samples.beside[1][2] = StageSamples(1, {});
  const auto without = calibration_of(network, {}, {}, measured);
  REQUIRE(without);
  CHECK(without->slowdown.empty());
  CHECK(without->model.profile.slowdown.empty());
  REQUIRE(without->left_out.size() == 1);
  CHECK(without->left_out.front().find("slow-down") != std::string::npos);
}

TEST_CASE("fewer micro-batches in flight change a kind as one does, in proportion to their number" *
          doctest::test_suite("measures")) {
  const Network network = small_network();  // linear, relu | linear, gelu, head
  Measured measured;
  BatchSamples& samples = measured.batches.emplace_back();
  samples.batch = 8;
  samples.stages = {made_stage(2, 1000), made_stage(3, 2000)};
  samples.alone_in_flight = {made_stage(2, 700), made_stage(3, 1990)};
  const auto made = calibration_of(network, {}, {}, measured);
  REQUIRE(made);
  const auto is = [](const std::vector<double>& factors, const std::vector<double>& wanted) {
    REQUIRE(factors.size() == wanted.size());
    for (std::size_t k = 0; k < wanted.size(); ++k) CHECK(factors[k] == doctest::Approx(wanted[k]));
  };
  // Two devices had three in flight: (700 + 1990) / (1000 + 2000).
  is(made->in_flight.at("linear"), {2690.0 / 3000, (1 + 2690.0 / 3000) / 2, 1});
  is(made->in_flight.at("relu"), {0.7, 0.85, 1});
  is(made->in_flight.at("head"), {0.995, 0.9975, 1});
  // An effect that noise can explain does not go into the profile.
  CHECK(made->min_in_flight() == 0.01);
  CHECK_FALSE(made->model.profile.in_flight.contains("head"));
  const auto read_back = parse_profile(
      std::make_shared<const Source>(Source{"made.profile.yaml", profile_yaml(made->model), ""}));
  REQUIRE(read_back);
  is(read_back->profile.in_flight.at("linear"), {2690.0 / 3000, (1 + 2690.0 / 3000) / 2, 1});
  CHECK(read_back->profile.in_flight.size() == 2);

  samples.alone_in_flight[1] = StageSamples(3, {});
  const auto without = calibration_of(network, {}, {}, measured);
  REQUIRE(without);
  CHECK(without->in_flight.empty());
  CHECK(without->model.profile.in_flight.empty());
  REQUIRE(without->left_out.size() == 1);
  CHECK(without->left_out.front().find("micro-batches in flight") != std::string::npos);
}

TEST_CASE("batches without a clean pass of every kind are left out, the others are kept" *
          doctest::test_suite("measures")) {
  const Network network = small_network();
  CalibrationOptions options;
  Measured measured;
  measured.clock = 2000;
  measured.load = 0.5;
  measured.batches = {made_samples(2, 10), made_samples(4, 20, Pass::update), made_samples(8, 40)};
  const auto two = calibration_of(network, {}, options, measured);
  REQUIRE(two);
  REQUIRE(two->model.profile.measurements.size() == 2);
  CHECK(two->model.profile.measurements[0].batch == 2);
  CHECK(two->model.profile.measurements[1].batch == 8);
  CHECK(two->model.profile.measurements[1].layers[4].backward.mean == Duration{40});
  CHECK(two->model.profile.blocks.empty());
  CHECK(two->left_out == std::vector<std::string>{"micro-batches of 4 samples are left out: 8 of "
                                                  "10 passes were clean, and of one kind none"});
  CHECK(two->passes == 20);
  CHECK(two->dropped == 0);
  const auto& provenance = two->model.profile.provenance;
  for (const char* key : {"host", "system", "compiler", "device", "library"})
    CHECK_MESSAGE(provenance.contains(key), key);
  CHECK(provenance.at("optimizer") == "sgd");
  CHECK(provenance.at("clock") == "2000 MHz");
  CHECK(provenance.at("load") == "0.50");
  CHECK(provenance.at("passes") == "20");

  measured.batches.pop_back();
  options.optimizer = OptimizerKind::adam;
  const auto one = calibration_of(network, {}, options, measured);
  REQUIRE(one);
  CHECK(one->model.profile.measurements.size() == 1);
  REQUIRE(one->model.profile.blocks.size() == 1);
  CHECK(one->model.profile.blocks[0].forward == Duration{50});  // of batch 2, not of the other
  CHECK(one->model.profile.provenance.at("optimizer") == "adam");

  measured.batches.erase(measured.batches.begin());
  const auto none = calibration_of(network, {}, options, measured);
  REQUIRE_FALSE(none);
  CHECK(to_text(none.problems()) ==
        "error: too much other work on this machine: 8 of 10 passes were clean, and of one kind "
        "none\n  help: try again when it is quiet, or with more time\n");
}

}  // namespace
}  // namespace plumbline::test
