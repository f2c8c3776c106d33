// Times from FLOPs and bytes, and the devices that they are for.
// SPDX-License-Identifier: MIT
#include "models/roofline.h"

#include <doctest/doctest.h>

#include "models/device_presets.h"
#include "models/profile_reader.h"
#include "models/profile_writer.h"
#include "tests/support/builders.h"

namespace plumbline {
namespace {

using std::chrono::milliseconds;

DeviceRoofline device() {
  return {"a device", {1'000'000'000'000}, {1'000'000'000}, 0.5, BytesPerSecond{1'000'000'000}};
}

TEST_CASE("a pass takes the longer of computing and memory, and the link on top") {
  CHECK(pass_time({{1'000'000'000}, {500'000}, {}}, device()) == milliseconds(2));    // computes
  CHECK(pass_time({{1'000'000'000}, {3'000'000}, {}}, device()) == milliseconds(6));  // moves
  CHECK(pass_time({{1'000'000'000}, {3'000'000}, {1'000'000}}, device()) == milliseconds(7));
  CHECK(pass_time({}, device()) == Duration::zero());
  DeviceRoofline hiding = device();
  hiding.link_overlap = 0.75;
  CHECK(pass_time({{1'000'000'000}, {}, {2'000'000}}, hiding) == std::chrono::microseconds(2500));
  CHECK(pass_time({{1'000'000'000}, {}, {8'000'000}}, hiding) == milliseconds(8));  // 2 ms at most
  DeviceRoofline whole = device();
  whole.efficiency = 1;
  CHECK(pass_time({{1'000'000'000}, {500'000}, {}}, whole) == milliseconds(1));
  whole.peak = {1};
  CHECK_FALSE(pass_time({{1'000'000'000'000}, {}, {}}, whole));
}

TEST_CASE("layers without times get them, and the backward in its two parts; given times win") {
  auto model = parse_profile(test::text_source("p.yaml", R"(version: 1
kind: profile
layers:
  - {name: a, flops: 1 GFLOP}
  - {name: b, flops: {forward: 1 GFLOP, backward_input: 2 GFLOP}, memory_traffic: {backward_weight: 1 MB}}
  - {name: c, flops: 1 GFLOP, forward: 5 ms, backward: 9 ms}
)"));
  REQUIRE(model);
  REQUIRE(needs_estimate(model->profile));
  REQUIRE_FALSE(estimate_times(*model, device(), {}, {}));
  const std::vector<LayerCosts>& costs = model->profile.measurements[0].layers;
  CHECK(costs[0].forward.mean == milliseconds(2));
  CHECK(costs[0].backward.mean == milliseconds(4));
  CHECK(costs[1].split->input.mean == milliseconds(4));
  CHECK(costs[1].split->weight.mean == milliseconds(2));
  CHECK(costs[1].backward.mean == milliseconds(6));
  CHECK(costs[2].forward.mean == milliseconds(5));
  CHECK(costs[2].backward.mean == milliseconds(9));
  CHECK_FALSE(costs[2].split);
  CHECK(costs_at(model->profile, 1).estimated ==
        "layer times of 2 of 3 layers: from FLOPs and bytes, by a roofline of a device: 50 % of 1 "
        "TFLOP/s and of 1 GB/s");
}

TEST_CASE("an update takes what it moves; one that is given stays, and timed layers get none") {
  const std::string text = R"(version: 1
kind: profile
layers:
  - {name: a, flops: 1 GFLOP, parameters: 1 MB}
  - {name: b, flops: 1 GFLOP, parameters: 1 MB, update: 7 ms}
  - {name: c, forward: 5 ms, backward: 9 ms, parameters: 1 MB}
  - {name: d, flops: 1 GFLOP, parameters: 1 MB, update: 0 us}
)";
  const auto updates = [&](const OptimizerBytes& optimizer) {
    auto model = parse_profile(test::text_source("p.yaml", text));
    REQUIRE(model);
    REQUIRE_FALSE(estimate_times(*model, device(), optimizer, {}));
    CHECK(model->profile.estimated.ends_with("and of 1 GB/s; updates from the bytes they move"));
    CHECK(profile_yaml(*model).find("update: 0 ") != std::string::npos);  // a given 0 is written
    std::vector<Duration> times;
    times.reserve(4);
    for (const LayerCosts& layer : model->profile.measurements[0].layers)
      times.push_back(layer.update.mean);
    return times;
  };
  const Duration given = milliseconds(7);
  // Half of 1 GB/s. Gradient descent reads weights and gradients and writes weights;
  CHECK(updates({}) == std::vector<Duration>{milliseconds(6), given, {}, {}});
  // Adam in fp32 reads and writes two moments besides;
  CHECK(updates({2, 1}) == std::vector<Duration>{milliseconds(14), given, {}, {}});
  // of weights in bf16, these, gradients in fp32, and weights and moments in fp32.
  CHECK(updates({6, 2}) == std::vector<Duration>{milliseconds(32), given, {}, {}});
}

TEST_CASE("an update holds what its group sends to add up the gradients of what is replicated") {
  const std::string text = R"(version: 1
kind: profile
group: {devices: 4}
layers:
  - {name: a, flops: 1 GFLOP, parameters: 4 MB, replicated: 2 MB}
  - {name: b, flops: 1 GFLOP, parameters: 4 MB, replicated: 2 MB, update: 7 ms}
  - {name: c, forward: 5 ms, backward: 9 ms, parameters: 4 MB, replicated: 2 MB}
)";
  const auto updates = [&](const OptimizerBytes& optimizer, bool shared) {
    auto model = parse_profile(test::text_source("p.yaml", text));
    REQUIRE(model);
    if (shared) model->graph.share_steps(4);
    REQUIRE_FALSE(estimate_times(*model, device(), optimizer, {}));
    CHECK(
        model->profile.estimated.ends_with("; updates from the bytes they move and those that "
                                           "their group adds up"));
    const std::vector<LayerCosts>& layers = model->profile.measurements[0].layers;
    CHECK(layers[1].update.mean == milliseconds(7));
    CHECK(layers[2].update.mean == Duration{});
    return layers[0].update.mean;
  };
  // Half of 1 GB/s for 3 times 4 MB, and 1 GB/s for a ring of 2 x 3/4 x 2 MB.
  CHECK(updates({}, false) == milliseconds(24 + 3));
  // Three quarters of 2 MB are stepped elsewhere: 2.5 MB; half a ring there, half a ring back.
  CHECK(updates({}, true) == milliseconds(15 + 3));
  // Gradients twice as wide; weights go back as wide as they are.
  CHECK(updates({0, 2}, false) == milliseconds(32 + 6));
  CHECK(updates({0, 2}, true) == std::chrono::microseconds(20'000 + 4'500));
  // Without a link there is no way, unless the update is given.
  DeviceRoofline alone = device();
  alone.link_bandwidth.reset();
  auto model = parse_profile(test::text_source("p.yaml", text));
  REQUIRE(model);
  const auto problem = estimate_times(*model, alone, {}, {});
  REQUIRE(problem);
  CHECK(problem->message == "layer 'a' has replicated parameters, but the device has no link");
  model->profile.measurements[0].layers[0].update_given = true;
  CHECK_FALSE(estimate_times(*model, alone, {}, {}));
}

TEST_CASE("every preset has a source, sorted names and peaks that grow as numbers get shorter") {
  std::string before;
  for (const DevicePreset& preset : device_presets()) {
    CAPTURE(preset.name);
    CHECK(before < preset.name);
    before = preset.name;
    CHECK_FALSE(preset.source.empty());
    CHECK(find_device_preset(preset.name) == &preset);
    CHECK(preset.peak(NumberFormat::fp32) < preset.peak(NumberFormat::bf16));
    CHECK(preset.peak(NumberFormat::bf16) == preset.peak(NumberFormat::fp16));
    if (preset.peak(NumberFormat::fp8))
      CHECK(preset.peak(NumberFormat::bf16) < preset.peak(NumberFormat::fp8));
    CHECK(preset.memory_bandwidth > preset.link_bandwidth);
  }
  CHECK(find_device_preset("h100") == nullptr);
}

}  // namespace
}  // namespace plumbline
