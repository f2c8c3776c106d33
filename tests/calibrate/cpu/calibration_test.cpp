// Laws that a calibration must satisfy on any machine, whatever its speed.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cpu/calibration.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <tuple>

#include "base/bug.h"
#include "calibrate/cpu/layer.h"
#include "calibrate/cpu/overheads.h"
#include "calibrate/cpu/stage.h"
#include "calibrate/measure/calibration_memory.h"
#include "calibrate/runtime/clock.h"
#include "models/network/network_reader.h"
#include "models/profile/profile_reader.h"
#include "models/profile/profile_writer.h"
#include "tests/support/trials.h"

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
  options.min_seconds = 0.05;
  options.max_seconds = 0.3;
  return options;
}

Result<Calibration> calibrate(const Network& network, const CalibrationOptions& options) {
  const auto measured = measure_layers(network, {}, options);
  if (!measured) return measured.problems();
  return calibration_of(network, {}, options, *measured);
}

bool has_backend() {
  if (!cpu_library().empty()) return true;
  MESSAGE("skipped: this build has no oneDNN");
  return false;
}

TEST_CASE("a bug on the thread of a core reaches whoever lets it walk, and all rest then" *
          doctest::test_suite("measures")) {
  if (!has_backend()) return;
  const Network network = small_network();
  StopLimits limits;
  limits.max_samples = 1'000;
  std::vector<StageSamples> of_another = {StageSamples(3, limits)};  // the stage has 5 layers
  const auto timers = cpu_devices()->timers(network, {{0, 4}}, quick(), 2);
  const auto walk = [&] {
    timers->start({0}, 1, 1, Duration{}, of_another);
    timers->count_from(now());
    for (int i = 0; i < 500; ++i) timers->go_on();
  };
  CHECK_THROWS_AS(walk(), Bug);
  CHECK_NOTHROW(timers->stop());
  CHECK_THROWS_AS(walk(), Bug);
}

TEST_CASE("a calibration times every pass of every layer, and its profile can be read back" *
          doctest::test_suite("measures")) {
  if (!has_backend()) return;
  const Network network = small_network();
  CalibrationOptions options = quick();
  options.batches = {8, 2};
  const auto calibration = calibrate(network, options);
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

TEST_CASE("the layers of a calibrated stage add up to its pass" * doctest::test_suite("measures")) {
  if (!has_backend()) return;
  const auto measured = measure_layers(small_network(), {}, quick());
  REQUIRE(measured);
  const StageSamples& stage = measured->batches.at(0).stages.at(0);
  for (const Pass pass : kAllPasses) {
    for (std::size_t i = 0; i < stage.whole(pass).size(); ++i) {
      double layers = 0;
      for (std::size_t layer = 0; layer < stage.layers(); ++layer)
        layers += stage.of_layer(pass, layer)[i];
      CHECK(layers == stage.whole(pass)[i]);
    }
  }
  const auto calibration = calibration_of(small_network(), {}, quick(), *measured);
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
  // The stamps telescope, so sums differ from the whole by their trimming alone: little, unless the
  // machine has other work.
  const double forward = sum([](const LayerCosts& layer) { return layer.forward; });
  const double backward = sum([](const LayerCosts& layer) { return layer.backward; });
  CHECK(forward / seconds(profile.blocks[0].forward) == doctest::Approx(1).epsilon(0.3));
  CHECK(backward / seconds(profile.blocks[0].backward) == doctest::Approx(1).epsilon(0.3));
}

TEST_CASE("more devices than cores or layers, and networks that do not run, are refused" *
          doctest::test_suite("measures")) {
  if (!has_backend()) return;
  Network network = small_network();
  CalibrationOptions options = quick();
  options.devices = 6;
  const auto too_many = check_calibration(network, {}, options);
  REQUIRE(too_many);
  CHECK(too_many->message == "6 devices, but the network 'small' has 5 layers");
  CHECK(too_many->fault == Fault::input);
  options.devices = usable_cores() + 1;
  while (network.layers.size() < options.devices)
    network.layers.insert(network.layers.begin(), network.layers.front());
  const auto no_core = check_calibration(network, {}, options);
  REQUIRE(no_core);
  CHECK(no_core->message.starts_with(std::to_string(options.devices) + " devices, but there "));
  CHECK(no_core->fault == Fault::no_device);
  options.devices = 1;
  options.batches = {1, 1'000'000'000};
  const auto too_large = check_calibration(network, {}, options);
  REQUIRE(too_large);
  CHECK(too_large->message.starts_with("micro-batches of 1000000000 samples take "));
  CHECK(too_large->fault == Fault::infeasible);
  network.layers.pop_back();
  const auto refused = calibrate(network, quick());
  REQUIRE_FALSE(refused);
  CHECK(refused.problems().front().message ==
        "the network 'small' does not end in a head, so it has no loss");
}

TEST_CASE("an interrupted calibration goes on from the rounds that it kept" *
          doctest::test_suite("measures")) {
  if (!has_backend()) return;
  const Network network = small_network();
  CalibrationOptions options = quick();
  options.batches = {2, 8};
  options.max_seconds = 0.2;
  options.min_seconds = 0.2;
  std::vector<KeptRound> rounds;
  options.keep = [&](const KeptRound& round) -> std::optional<Diagnostic> {
    rounds.push_back(round);
    return std::nullopt;
  };
  options.interrupted = [&] { return !rounds.empty(); };
  const auto first = measure_layers(network, {}, options);
  REQUIRE(first);
  CHECK(first->interrupted);
  REQUIRE(rounds.size() == 1);
  CHECK(rounds[0].batch == 2);
  CHECK(rounds[0].measured >= std::chrono::milliseconds(200));
  CHECK(first->batches[0].passes() == static_cast<std::int64_t>(rounds[0].passes.size()));

  options.kept.rounds = rounds;
  options.interrupted = nullptr;
  const auto second = measure_layers(network, {}, options);
  REQUIRE(second);
  CHECK_FALSE(second->interrupted);
  REQUIRE(rounds.size() == 3);  // the first batch is not measured again
  CHECK(rounds[1].batch == 8);
  CHECK_FALSE(rounds[1].one_in_flight);
  CHECK(rounds[2].batch == 8);
  CHECK(rounds[2].one_in_flight);
  CHECK(second->batches[1].measured == rounds[1].measured);
  CHECK(second->batches[0].passes() == first->batches[0].passes());
  CHECK(second->batches[0].measured == rounds[0].measured);
  CHECK(second->batches[1].passes() > 0);

  // Where only the round with one in flight is missing, one of all comes first.
  options.kept.rounds = {rounds[0], rounds[1]};
  std::vector<KeptRound> more;
  std::swap(rounds, more);
  const auto without = measure_layers(network, {}, options);
  REQUIRE(without);
  REQUIRE(rounds.size() == 2);
  CHECK(rounds[0].is_of_all());
  CHECK(rounds[1].one_in_flight);
  for (const StageSamples& stage : without->batches[1].alone_in_flight)
    CHECK_FALSE(stage.missing());
  std::swap(rounds, more);

  options.max_seconds = 0.4;  // more time: both go on, and what was kept still counts
  options.min_seconds = 0.4;
  options.kept.rounds = rounds;
  const auto third = measure_layers(network, {}, options);
  REQUIRE(third);
  CHECK(third->batches[0].measured > second->batches[0].measured);
  CHECK(third->batches[0].passes() > second->batches[0].passes());
  CHECK(third->batches[1].passes() > second->batches[1].passes());
}

TEST_CASE("what cannot be kept ends a calibration, and so do kept passes of other layers" *
          doctest::test_suite("measures")) {
  if (!has_backend()) return;
  const Network network = small_network();
  CalibrationOptions options = quick();
  options.keep = [](const KeptRound&) {
    return std::optional(input_error({}, "the disk is full"));
  };
  const auto full = measure_layers(network, {}, options);
  REQUIRE_FALSE(full);
  CHECK(full.problems().front().message == "the disk is full");

  const auto problem = [&](std::int64_t batch, const KeptPass& pass) {
    options.kept.source = std::make_shared<const Source>(Source{"p.partial", "a\nb\n", ""});
    options.kept.rounds = {{batch, Duration{1}, {pass}, {}, false, {}}};
    const auto refused = measure_layers(network, {}, options);
    REQUIRE_FALSE(refused);
    return to_text(refused.problems().front());
  };
  const std::string end = "    2 | b\n      | ^\n  help: delete the file and calibrate anew\n";
  CHECK(problem(8, {0, {Pass::forward, {1, 2}}, 2}) ==
        "p.partial:2:1: error: this pass has the times of 2 layers, and device 0 has 5\n" + end);
  CHECK(problem(8, {1, {Pass::forward, {}}, 2}) ==
        "p.partial:2:1: error: there is no device 1\n" + end);
  CHECK(problem(2, {0, {Pass::forward, {}}, 2}) ==
        "p.partial:2:1: error: no batch of 2 is asked for\n" + end);
}

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

/// The samples of a device with one layer of each kind of `small_network`; each layer takes `ns`.
StageSamples made_stage(std::size_t layers, std::int64_t ns) {
  StopLimits limits;
  limits.max_samples = 100;
  limits.max_time = std::chrono::seconds(1);
  StageSamples stage(layers, limits);
  for (const Pass pass : kAllPasses) {
    for (int i = 0; i < 2; ++i) stage.add({pass, std::vector<std::int64_t>(layers, ns)}, {});
  }
  return stage;
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

TEST_CASE("with two devices both are also measured taking turns, with the largest batch, once" *
          doctest::test_suite("measures")) {
  if (!has_backend()) return;
  if (usable_cores() < 2) {
    MESSAGE("skipped: one core");
    return;
  }
  const Network network = small_network();
  CalibrationOptions options = quick();
  options.batches = {2, 8};
  options.devices = 2;
  std::vector<KeptRound> in_turns;
  options.keep = [&](const KeptRound& round) -> std::optional<Diagnostic> {
    options.kept.rounds.push_back(round);
    if (round.neighbours) in_turns.push_back(round);
    return std::nullopt;
  };
  const auto measured = measure_layers(network, {}, options);
  REQUIRE(measured);
  CHECK(measured->batches[0].beside.empty());
  REQUIRE(measured->batches[1].beside.size() == 1);
  REQUIRE(in_turns.size() == 1);
  CHECK(in_turns[0].neighbours == 0U);
  CHECK(in_turns[0].batch == 8);
  std::array<std::int64_t, 2> passes{};
  Duration at_work{};
  for (const KeptPass& pass : in_turns[0].passes) {
    ++passes.at(pass.device);
    for (const std::int64_t ns : pass.times.layers) at_work += Duration{ns};
  }
  CHECK(at_work <= in_turns[0].measured);  // one after the other
  for (std::uint32_t device = 0; device < 2; ++device)
    CHECK(measured->batches[1].beside.at(0)[device].passes() == passes[device]);
  CHECK(passes[0] > 0);
  CHECK(passes[1] > 0);
  for (const StageSamples& stage : measured->batches[1].beside.at(0)) {
    if (stage.missing()) {
      MESSAGE("inconclusive: " << *stage.missing());
      return;
    }
  }
  options.keep = nullptr;
  const auto again = measure_layers(network, {}, options);  // all of it is kept
  REQUIRE(again);
  CHECK(again->batches[1].beside.at(0)[1].passes() ==
        measured->batches[1].beside.at(0)[1].passes());
  options.slowdown = false;
  options.kept = {};
  const auto without = measure_layers(network, {}, options);
  REQUIRE(without);
  CHECK(without->batches[1].beside.empty());
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

TEST_CASE("batches are measured in ascending order, each once" * doctest::test_suite("measures")) {
  CalibrationOptions options;
  options.batches = {8, 2, 8};
  CHECK(batches_of(options) == std::vector<std::int64_t>{2, 8});
}

TEST_CASE("the memory of a calibration is what its stages hold" * doctest::test_suite("measures")) {
  if (!has_backend()) return;
  const Network network = small_network();
  const StageLayers stages = {{0, 1}, {2, 4}};
  double floats = 0;
  for (const auto& [first, last] : stages) {
    const CpuStage stage(network, first, last, 64);
    floats += static_cast<double>(2 * stage.parameter_floats() + stage.scratch_floats());
    const double data = 64.0 * 64;
    floats += 3 * (data + static_cast<double>(2 * stage.input_floats() + 2 * stage.output_floats() +
                                              stage.kept_floats() + stage.left_floats()));
  }
  const double bytes = calibration_bytes(network, stages, 64, OptimizerKind::gradient_descent);
  CHECK(bytes == doctest::Approx(4 * floats).epsilon(0.01));
  const double parameters = 4.0 * static_cast<double>(network.parameter_count());
  CHECK(calibration_bytes(network, stages, 64, OptimizerKind::adam) ==
        doctest::Approx(bytes + 2 * parameters));
}

TEST_CASE("a batch that the memory does not hold is refused with the largest that fits" *
          doctest::test_suite("measures")) {
  const Network network = small_network();
  const StageLayers stages = {{0, 4}};
  constexpr auto kind = OptimizerKind::gradient_descent;
  const Bytes holds_eight{static_cast<std::int64_t>(calibration_bytes(network, stages, 8, kind))};
  CHECK_FALSE(check_for_memory(network, {}, stages, 8, kind, holds_eight));
  const auto nine = check_for_memory(network, {}, stages, 9, kind, holds_eight);
  REQUIRE(nine);
  CHECK(nine->help == "--batch 8 is about the largest that fits");
  CHECK(nine->fault == Fault::infeasible);
  const auto all = check_for_memory(network, {}, stages, 1'000'000'000, kind, Bytes{3 << 20});
  REQUIRE(all);
  CHECK(all->message ==
        "micro-batches of 1000000000 samples take 22.92 TiB of memory on 1 device, and 3 MiB are "
        "available");
  const auto none = check_for_memory(network, {}, stages, 4, kind, Bytes{1000});
  REQUIRE(none);
  CHECK(none->help == "not even one sample fits: a smaller network, or another machine");
}

TEST_CASE("the head of a calibration tells all that decides its times" *
          doctest::test_suite("measures")) {
  CalibrationOptions options;
  options.batches = {8, 2};
  const CalibrationHead head = calibration_head(small_network(), options, "plumbline 1");
  std::vector<std::string> keys;
  for (const auto& [key, value] : head) keys.push_back(key);
  CHECK(keys == std::vector<std::string>{"network", "batches", "devices", "copies", "optimizer",
                                         "seed", "slowdown", "in flight", "backend", "processor",
                                         "cores", "library", "tool"});
  CHECK(head[1].second == "2, 8");
  const auto differs = [&](std::size_t place, const Network& network,
                           const CalibrationOptions& other, const char* tool) {
    CalibrationHead changed = calibration_head(network, other, tool);
    CHECK(changed[place].second != head[place].second);
    changed[place].second = head[place].second;
    CHECK(changed == head);
  };
  Network network = small_network();
  std::get<Head>(network.layers.back().settings).bias = true;
  differs(0, network, options, "plumbline 1");
  CalibrationOptions other = options;
  other.batches = {2};
  differs(1, small_network(), other, "plumbline 1");
  other = options;
  other.devices = 2;
  differs(2, small_network(), other, "plumbline 1");
  other = options;
  other.copies = 2;
  differs(3, small_network(), other, "plumbline 1");
  other = options;
  other.optimizer = OptimizerKind::adam;
  differs(4, small_network(), other, "plumbline 1");
  other = options;
  other.seed = 2;
  differs(5, small_network(), other, "plumbline 1");
  other = options;
  other.slowdown = false;
  differs(6, small_network(), other, "plumbline 1");
  other = options;
  other.in_flight = false;
  differs(7, small_network(), other, "plumbline 1");
  differs(12, small_network(), options, "plumbline 2");
}

TEST_CASE("the runner's own overheads are measured and are no milliseconds" *
          doctest::test_suite("measures")) {
  if (kSanitized) return;  // a minute there, and other cases watch the same runner
  const Overheads overheads = measure_overheads();
  CHECK(overheads.per_op.count() > 0);
  CHECK(overheads.hand_over.count() >= 0);
  CHECK(overheads.per_op < std::chrono::milliseconds(5));
  CHECK(overheads.hand_over < std::chrono::milliseconds(5));
  CHECK_FALSE(overheads.add_up);
}

TEST_CASE("to write weights elsewhere than the old ones takes no longer than some gigabytes do" *
          doctest::test_suite("measures")) {
  CHECK_FALSE(measure_stash(OptimizerKind::adam, 0));
  for (const OptimizerKind kind : {OptimizerKind::gradient_descent, OptimizerKind::adam}) {
    const auto rate = measure_stash(kind, std::size_t{1} << (kSanitized ? 18 : 22));
    if (kSanitized) continue;  // how it walks is looked at, not how fast
    if (!rate) {
      MESSAGE("inconclusive: in place takes as long");
      continue;
    }
    CHECK(rate->count > 100'000'000);  // it may be as fast as it likes: hardly any difference
  }
}

TEST_CASE("what it takes to add up the gradients of another core is some gigabytes a second" *
          doctest::test_suite("measures")) {
  CHECK_FALSE(measure_add_up(OptimizerKind::adam, 0));
  if (usable_cores() < 2) return;
  for (const OptimizerKind kind : {OptimizerKind::gradient_descent, OptimizerKind::adam}) {
    const auto rate = measure_add_up(kind, std::size_t{1} << (kSanitized ? 16 : 20));
    if (kSanitized) continue;  // how it walks is looked at, not how fast
    REQUIRE(rate);             // two walks over 4 MiB at least
    CHECK(rate->count > 100'000'000);
    CHECK(rate->count < 1'000'000'000'000);
  }
}

}  // namespace
}  // namespace plumbline::test
