// Calibrating on CUDA devices without a GPU: the clock is a test's, so times are known exactly.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/timing/calibration.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/measure/sampling.h"
#include "models/network/network_reader.h"
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

/// Bursts are short, as kernels are emulated.
CudaCalibrationOptions own(std::size_t max_turns = 4) {
  CudaCalibrationOptions options;
  options.builtin_kernels = true;
  options.max_turns = max_turns;
  options.warm_up_seconds = 0.01;
  return options;
}

CalibrationOptions short_time(std::uint32_t devices, std::vector<std::int64_t> batches) {
  CalibrationOptions options;
  options.devices = devices;
  options.batches = std::move(batches);
  options.min_seconds = 0.2;
  options.max_seconds = 20;  // of a busy machine; else the first look sees that nothing varies
  return options;
}

std::int64_t ns(Duration time) { return time.count(); }

TEST_CASE("devices walk in bursts that begin together and end together" *
          doctest::test_suite("slow")) {
  FakeCuda fake;
  fake.add(emulated_kernels());
  fake.set_duration("plumbline_activate_f32", 40'000);  // on the second of two devices
  const Network network = small_network();
  auto devices = cuda_calibration_devices(fake.driver(), network, 2, own(48));
  REQUIRE(devices);
  CalibrationOptions options = short_time(2, {2});
  options.slowdown = false;
  options.in_flight = false;
  static_cast<void>((*devices)->overheads(network, options));  // kernels that spin, too
  fake.clear_executions();
  REQUIRE(measure_layers(**devices, network, {}, options));
  struct Burst {
    std::uint64_t opens = 0;
    std::map<unsigned, std::pair<std::uint64_t, std::uint64_t>> from_to{};  ///< By first SM.
  };
  std::vector<Burst> bursts;
  for (const FakeExecution& one : fake.executions()) {
    if (one.what == "plumbline_count_cycles") continue;
    if (one.what == "plumbline_wait_for_host") {
      bursts.push_back({one.end});
    } else if (!bursts.empty()) {
      auto& [from, to] =
          bursts.back().from_to.try_emplace(one.first_sm, one.begin, one.end).first->second;
      from = std::min(from, one.begin);
      to = std::max(to, one.end);
    }
  }
  REQUIRE(bursts.size() > 5);
  for (std::size_t i = 3; i < bursts.size(); ++i) {
    REQUIRE(bursts[i].from_to.size() == 2);
    std::uint64_t min = ~std::uint64_t{0};
    std::uint64_t max = 0;
    for (const auto& [sm, from_to] : bursts[i].from_to) {
      CHECK(from_to.first == bursts[i].opens);
      min = std::min(min, from_to.second);
      max = std::max(max, from_to.second);
    }
    CHECK(max - min < 100'000);              // two turns of the slow one
    CHECK(max - bursts[i].opens > 250'000);  // of five or more
  }
}

TEST_CASE("a calibration finds the times of the kernels, exactly" * doctest::test_suite("slow")) {
  FakeCuda fake;
  fake.add(emulated_kernels());
  fake.set_duration("plumbline_relu_f32", 7000);
  fake.set_duration("plumbline_relu_gradient_f32", 9000);
  fake.set_duration("plumbline_activate_f32", 11'000);
  fake.set_duration("plumbline_activate_gradient_f32", 13'000);
  const Network network = small_network();
  for (const std::uint32_t copies : {1U, 2U}) {
    CAPTURE(copies);
    auto devices = cuda_calibration_devices(fake.driver(), network, 2, own());
    REQUIRE(devices);
    CalibrationOptions options = short_time(2, {2, 3});
    options.copies = copies;
    REQUIRE_FALSE(check_calibration(**devices, network, {}, options));
    const auto measured = measure_layers(**devices, network, {}, options);
    REQUIRE_MESSAGE(measured, (measured ? "" : to_text(measured.problems())));
    CHECK_FALSE(measured->interrupted);
    const auto calibration = calibration_of(**devices, network, {}, options, *measured);
    REQUIRE_MESSAGE(calibration, (calibration ? "" : to_text(calibration.problems())));
    CHECK(calibration->dropped == 0);
    CHECK(calibration->noise == 0);
    CHECK(calibration->drift == 0);
    // With one micro-batch in flight these kernels take what they take.
    CHECK(measured->batches.front().alone_in_flight.empty());
    REQUIRE(measured->batches.back().alone_in_flight.size() == 2);
    for (const StageSamples& stage : measured->batches.back().alone_in_flight)
      CHECK_FALSE(stage.missing());
    REQUIRE(calibration->in_flight.size() == 4);
    for (const auto& [kind, factors] : calibration->in_flight)
      CHECK(factors == std::vector<double>(3, 1.0));
    CHECK(calibration->model.profile.in_flight.empty());
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
      // A stage's update is one kernel; with copies, that of the head, too.
      CHECK(ns(linear.update.mean) > (copies == 1 ? 1000 : 500));
    }
    CHECK(profile.provenance.at("backend") == "cuda");
    CHECK(profile.provenance.at("device") == "Fake H100");
    CHECK(profile.provenance.at("sms") == "64");
    CHECK(profile.provenance.at("busy_devices") == "2");
    CHECK(profile.provenance.count("split") == 1);
    const Overheads overheads = (*devices)->overheads(network, {});
    CHECK(overheads.per_op == Duration{});
    CHECK(overheads.hand_over == Duration{});
    Profile between;
    measure_between(**devices, network, options, between);
    CHECK(between.overheads->hand_over == Duration{});
    CHECK(between.overheads->per_op == Duration{});
    REQUIRE(between.links.size() == 3);
    CHECK(between.links.front().kind == "copy");
    // What its layers hand on at both batch sizes, what two devices with all layers send each other
    // of 50 gradients, and sizes around these.
    const TransferTable& table = between.links.front().table;
    std::vector<std::int64_t> sizes;
    for (const auto& [size, time] : table) sizes.push_back(size.count);
    CHECK(sizes ==
          std::vector<std::int64_t>{2 * 5 * 4, 3 * 5 * 4, 50 * 4 / 2, 1 << 10, 1 << 12, 1 << 14});
    for (const auto& [size, time] : table) CHECK(ns(time) == 500 + size.count / 64);
  }
  CHECK(fake.faults() == std::vector<std::string>{});
  CHECK(fake.live() == "");
}

TEST_CASE("a clock that falls while it is measured is told" * doctest::test_suite("slow")) {
  const Network network = small_network();
  const auto calibrated = [&](double from, double to) {
    FakeOptions options;
    // Two devices are asked after the warm-up and at the end of each round.
    const auto asked = std::make_shared<int>(0);
    options.clock = [=](std::uint64_t) { return (*asked)++ < 2 ? from : to; };
    FakeCuda fake(options);
    fake.add(emulated_kernels());
    auto devices = cuda_calibration_devices(fake.driver(), network, 2, own());
    REQUIRE(devices);
    CalibrationOptions two = short_time(2, {2});
    const auto measured = measure_layers(**devices, network, {}, two);
    REQUIRE_MESSAGE(measured, (measured ? "" : to_text(measured.problems())));
    auto calibration = calibration_of(**devices, network, {}, two, *measured);
    REQUIRE(calibration);
    return *std::move(calibration);
  };
  const Calibration steady = calibrated(1980, 1960);
  CHECK(steady.left_out.empty());
  CHECK(steady.model.profile.provenance.count("clock") == 1);
  CHECK(steady.model.profile.provenance.count("clock_fell") == 0);
  const Calibration fell = calibrated(2000, 1800);
  REQUIRE(fell.left_out.size() == 1);
  CHECK(fell.left_out.front().find("the devices' clock fell by 10.0 % while it was measured") == 0);
  CHECK(fell.model.profile.provenance.at("clock") == "2000 MHz");
  CHECK(fell.model.profile.provenance.at("clock_fell") == "0.1000");
}

/// Calibrates one device whose clock is `clock(n)` MHz when it is asked for the n-th time: after
/// the warm-up and at the end of each round. Rounds are short; they end with `most` of them, where
/// given.
struct ClockedCalibration {
  ClockedCalibration(const std::function<double(int)>& clock, std::size_t max,
                     bool in_flight = false) {
    FakeOptions fake_options;
    const auto asked = std::make_shared<int>(0);
    fake_options.clock = [=](std::uint64_t) { return clock((*asked)++); };
    FakeCuda fake(fake_options);
    fake.add(emulated_kernels());
    const Network network = small_network();
    auto devices = cuda_calibration_devices(fake.driver(), network, 1, own());
    REQUIRE(devices);
    CalibrationOptions options = short_time(1, {2});
    if (!in_flight) options.round_seconds = 0.01;  // else one round of all is enough
    options.in_flight = in_flight;
    options.max_seconds = 60;  // three rounds are dropped
    options.keep = [&](const KeptRound& round) -> std::optional<Diagnostic> {
      rounds.push_back(round);
      return std::nullopt;
    };
    if (max > 0) {  // however long these take
      options.min_seconds = options.max_seconds = 1000;
      options.interrupted = [&, max] { return rounds.size() == max; };
    }
    const auto measured = measure_layers(**devices, network, {}, options);
    REQUIRE_MESSAGE(measured, (measured ? "" : to_text(measured.problems())));
    samples = measured->batches.front();
    auto made = calibration_of(**devices, network, {}, options, *measured);
    REQUIRE(made);
    calibration = *std::move(made);
  }

  std::vector<KeptRound> rounds;
  BatchSamples samples;
  Calibration calibration;
};

TEST_CASE("what is measured while the devices are throttled is dropped" *
          doctest::test_suite("slow")) {
  const ClockedCalibration half([](int n) { return n % 2 == 0 ? 2000.0 : 1400.0; }, 4);
  REQUIRE(half.rounds.size() == 4);
  std::size_t kept = 0;
  std::size_t dropped = 0;
  for (std::size_t i = 0; i < half.rounds.size(); ++i) {
    for (const KeptPass& pass : half.rounds[i].passes) {
      CHECK(pass.times.layers.empty() == (i % 2 == 0));  // the first round is throttled
      (pass.times.layers.empty() ? dropped : kept) += 1;
    }
  }
  CHECK(half.samples.dropped() == static_cast<std::int64_t>(dropped));
  CHECK(half.samples.passes() == static_cast<std::int64_t>(dropped + kept));
  CHECK(dropped > 0);
  CHECK(kept > 0);
  CHECK(half.calibration.dropped > 0);
  CHECK(half.calibration.model.profile.provenance.count("clock_fell") == 0);
}

TEST_CASE("a throttled round with one micro-batch in flight is walked again" *
          doctest::test_suite("slow")) {
  // The first two rounds are one of all and one with one in flight, which is throttled.
  const ClockedCalibration second([](int n) { return n == 2 ? 1400.0 : 2000.0; }, 0, true);
  REQUIRE(second.rounds.size() >= 3);
  CHECK(second.rounds[0].is_of_all());
  CHECK(second.rounds[1].one_in_flight);
  std::size_t clean = 0;
  for (std::size_t i = 0; i < second.rounds.size(); ++i) {
    const bool is_dropped = second.rounds[i].passes.front().times.layers.empty();
    CHECK(is_dropped == (i == 1));
    clean += second.rounds[i].one_in_flight && !is_dropped ? 1 : 0;
  }
  CHECK(clean > 0);
  CHECK(second.calibration.left_out.empty());
  CHECK(second.calibration.in_flight.size() == 4);
  CHECK(second.calibration.model.profile.provenance.count("clock_fell") == 0);
}

TEST_CASE("a clock that stays low is the one that is measured, and told" *
          doctest::test_suite("slow")) {
  const ClockedCalibration low([](int n) { return n == 0 ? 2000.0 : 1400.0; }, 0);
  REQUIRE(low.rounds.size() > 3);
  for (std::size_t i = 0; i < low.rounds.size(); ++i)
    CHECK(low.rounds[i].passes.front().times.layers.empty() == (i < 3));
  CHECK(low.calibration.model.profile.provenance.at("clock_fell") == "0.3000");
}

TEST_CASE("layers are taken back to what their pass takes as one graph" *
          doctest::test_suite("slow")) {
  const Network network = small_network();
  FakeOptions slow;
  slow.graph_nanoseconds = 400;
  Duration stamps{};
  Duration per_op{};
  const auto profile_of = [&](const FakeOptions& fake_options, bool graphs) {
    FakeCuda fake(fake_options);
    fake.add(emulated_kernels());
    fake.set_duration("plumbline_relu_f32", 7000);
    fake.set_duration("plumbline_activate_f32", 11'000);
    CudaCalibrationOptions with = own();
    with.graphs = graphs;
    auto devices = cuda_calibration_devices(fake.driver(), network, 1, with);
    REQUIRE(devices);
    const CalibrationOptions options = short_time(1, {2});
    const auto measured = measure_layers(**devices, network, {}, options);
    REQUIRE_MESSAGE(measured, (measured ? "" : to_text(measured.problems())));
    const auto calibration = calibration_of(**devices, network, {}, options, *measured);
    REQUIRE(calibration);
    REQUIRE(calibration->stamps);
    stamps = *calibration->stamps;
    per_op = (*devices)->overheads(network, options).per_op;
    return calibration->model.profile;
  };
  const Profile bare = profile_of({}, true);
  CHECK(bare.provenance.at("launches") == "a graph for each pass");
  CHECK(bare.provenance.at("closure") == "+0.0000");
  CHECK(ns(bare.measurements[0].layers[1].forward.mean) == 7000);
  CHECK(stamps == Duration{});
  CHECK(per_op == Duration{});
  // Each of the four layers is measured with 400 ns of its graph, of which the pass has one: that
  // is none of its layers', but of every op. Events take no time on this driver.
  const Profile closed = profile_of(slow, true);
  CHECK(closed.provenance.at("closure") == "+0.0000");
  CHECK(stamps == Duration{400});
  CHECK(per_op == Duration{400});
  for (std::size_t i = 0; i < 4; ++i) {
    const LayerCosts& with = closed.measurements[0].layers[i];
    const LayerCosts& without = bare.measurements[0].layers[i];
    CHECK(std::abs(ns(with.forward.mean) - ns(without.forward.mean)) <= 1);
    CHECK(std::abs(ns(with.backward.mean) - ns(without.backward.mean)) <= 1);
  }
  const Block& block = closed.blocks.front();
  CHECK(ns(block.forward) == ns(bare.blocks.front().forward));
  CHECK(std::abs(closure(block, closed.measurements[0]).forward.value_or(1)) < 1e-3);
  const Profile one_by_one = profile_of(slow, false);
  CHECK(one_by_one.provenance.at("launches") == "one by one: --no-graphs");
  CHECK(ns(one_by_one.measurements[0].layers[1].forward.mean) == 7000);
}

TEST_CASE("what events take is in no time of the profile, nor in what an op takes besides" *
          doctest::test_suite("slow")) {
  const Network network = small_network();
  const auto calibrated = [&](std::uint64_t event, std::uint32_t count) {
    FakeOptions options;
    options.event_nanoseconds = event;
    options.graph_nanoseconds = 400;
    FakeCuda fake(options);
    fake.add(emulated_kernels());
    fake.set_duration("plumbline_relu_f32", 7000);
    auto devices = cuda_calibration_devices(fake.driver(), network, count, own(48));
    REQUIRE(devices);
    const CalibrationOptions two = short_time(count, {2});
    const auto measured = measure_layers(**devices, network, {}, two);
    REQUIRE_MESSAGE(measured, (measured ? "" : to_text(measured.problems())));
    for (const StageSamples& stage : measured->batches.front().stages)
      CHECK_FALSE(stage.piece_or_whole(Pass::turn).empty());
    auto calibration = calibration_of(**devices, network, {}, two, *measured);
    REQUIRE(calibration);
    calibration->model.profile.overheads = (*devices)->overheads(network, two);
    return *std::move(calibration);
  };
  for (const std::uint32_t count : {1U, 3U}) {  // with 3, every fourth turn is one buffer's
    CAPTURE(count);
    const Calibration free = calibrated(0, count);
    const Calibration dear = calibrated(3000, count);
    REQUIRE(free.stamps);
    REQUIRE(dear.stamps);
    CHECK(ns(*free.stamps) == 400);                   // the launch, which every op has
    CHECK(std::abs(ns(*dear.stamps) - 3400) <= 100);  // of rows of turns between two events
    CHECK(dear.model.profile.provenance.contains("stamps"));
    // One of the two events of a row is in what a launch takes.
    CHECK(std::abs(ns(dear.model.profile.overheads->per_op) - 400) <= 3000 / 48 + 1);
    const auto& layers = dear.model.profile.measurements[0].layers;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const LayerCosts& other = free.model.profile.measurements[0].layers[i];
      CHECK(std::abs(ns(layers[i].forward.mean) - ns(other.forward.mean)) <= 250);
      CHECK(std::abs(ns(layers[i].backward.mean) - ns(other.backward.mean)) <= 250);
    }
    // Neighbours and micro-batches in flight change nothing, whatever events take.
    for (const auto& [kind, factors] : dear.slowdown) {
      for (const double factor : factors) CHECK(std::abs(factor - 1) <= 0.05);
    }
  }
}

TEST_CASE("a calibration that was interrupted goes on where it stopped" *
          doctest::test_suite("slow")) {
  FakeCuda fake;
  fake.add(emulated_kernels());
  const Network network = small_network();
  auto devices = cuda_calibration_devices(fake.driver(), network, 1, own());
  REQUIRE(devices);
  CalibrationOptions options = short_time(1, {2});
  const CalibrationHead head = calibration_head(**devices, network, options, "plumbline 1");
  CHECK(head[8] == std::pair<std::string, std::string>{"backend", "cuda"});
  CHECK(head.back() == std::pair<std::string, std::string>{"tool", "plumbline 1"});
  std::vector<KeptRound> rounds;
  options.keep = [&](const KeptRound& round) -> std::optional<Diagnostic> {
    rounds.push_back(round);
    return std::nullopt;
  };
  // Times are read for passes that count.
  options.interrupted = [&] { return fake.calls("cuEventElapsedTime") > 50; };
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
  // Where all is kept it walks no more.
  options.kept.rounds = rounds;
  const auto third = measure_layers(**devices, network, {}, options);
  REQUIRE(third);
  CHECK(third->batches.front().passes() == second->batches.front().passes());
}

TEST_CASE("what cannot be calibrated is told") {
  FakeOptions small;
  small.gpus.front().memory = 1 << 20;
  FakeCuda fake(small);
  fake.add(emulated_kernels());
  const Network network = small_network();
  const auto devices = cuda_calibration_devices(fake.driver(), network, 1, own());
  REQUIRE(devices);
  const auto large = check_calibration(**devices, network, {}, short_time(1, {100'000}));
  REQUIRE(large);
  CHECK(large->fault == Fault::infeasible);
  CHECK(large->message.find("micro-batches of 100000 samples take") == 0);
  const auto many = check_calibration(**devices, network, {}, short_time(5, {1}));
  REQUIRE(many);
  CHECK(many->message == "5 devices, but the network 'n' has 4 layers");
  const auto none = cuda_calibration_devices(fake.driver(), network, 1000, own());
  REQUIRE_FALSE(none);
  CHECK(none.problems().front().fault == Fault::no_device);
}

}  // namespace
}  // namespace plumbline::test
