// Laws that a calibration must satisfy on any machine, whatever its speed.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cpu/calibration.h"

#include <doctest/doctest.h>

#include <array>

#include "base/bug.h"
#include "calibrate/cpu/stage.h"
#include "calibrate/measure/calibration_memory.h"
#include "calibrate/runtime/clock.h"
#include "models/profile/profile_reader.h"
#include "models/profile/profile_writer.h"
#include "tests/calibrate/cpu/small_calibration.h"

namespace plumbline::test {
namespace {

Result<Calibration> calibrate(const Network& network, const CalibrationOptions& options) {
  const auto measured = measure_layers(network, {}, options);
  if (!measured) return measured.problems();
  return calibration_of(network, {}, options, *measured);
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

}  // namespace
}  // namespace plumbline::test
