// Times from FLOPs and bytes, and the devices that they are for.
//
// SPDX-License-Identifier: MIT
#include "models/profile/estimate.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "models/hardware/device_presets.h"
#include "models/profile/profile_reader.h"
#include "models/profile/profile_writer.h"
#include "tests/support/text_source.h"

namespace plumbline {
namespace {

using std::chrono::milliseconds;

DeviceRoofline device() {
  DeviceRoofline device;
  device.name = "a device";
  device.peak = {1'000'000'000'000};
  device.memory_bandwidth = {1'000'000'000};
  device.link_bandwidth = BytesPerSecond{1'000'000'000};
  return device;
}

/// The work of one pass; bytes in kB.
PassWork work(std::int64_t mflop, std::int64_t memory, std::int64_t link = 0,
              std::int64_t network = 0) {
  return {.flops = {mflop * 1'000'000},
          .fp8_flops = {},
          .memory_traffic = {memory * 1000},
          .link_traffic = {link * 1000},
          .network_traffic = {network * 1000}};
}

TEST_CASE("a pass takes the longer of computing and memory, and the link on top") {
  CHECK(pass_time(work(1000, 500), device()) == milliseconds(2));   // computes
  CHECK(pass_time(work(1000, 3000), device()) == milliseconds(6));  // moves
  CHECK(pass_time(work(1000, 3000, 1000), device()) == milliseconds(7));
  CHECK(pass_time({}, device()) == Duration::zero());
  DeviceRoofline hiding = device();
  hiding.link_overlap = 0.75;
  CHECK(pass_time(work(1000, 0, 2000), hiding) == std::chrono::microseconds(2500));
  CHECK(pass_time(work(1000, 0, 8000), hiding) == milliseconds(8));  // 2 ms at most
  DeviceRoofline whole = device();
  whole.efficiency = 1;
  CHECK(pass_time(work(1000, 500), whole) == milliseconds(1));
  whole.peak = {1};
  CHECK_FALSE(pass_time(work(1'000'000, 0), whole));
}

TEST_CASE("what is multiplied in fp8 takes the peak of that, the rest the other") {
  DeviceRoofline fast = device();
  fast.fp8_peak = FlopsPerSecond{4'000'000'000'000};
  PassWork mixed = work(1000, 200);
  mixed.fp8_flops = {800'000'000};
  // 200 MFLOP at half of 1 TFLOP/s, 800 at half of 4.
  CHECK(pass_time(mixed, fast) == std::chrono::microseconds(400 + 400));
  mixed.fp8_flops = mixed.flops;
  CHECK(pass_time(mixed, fast) == std::chrono::microseconds(500));
  mixed.memory_traffic = {3'000'000};
  CHECK(pass_time(mixed, fast) == milliseconds(6));
}

TEST_CASE("products in fp8 are read, told, and refused by a device that has none") {
  const auto parsed = [](const std::string& keys) {
    return parse_profile(test::text_source(
        "p.yaml", "version: 1\nkind: profile\nlayers:\n  - {name: a, " + keys + "}\n"));
  };
  auto model = parsed(
      "flops: 1 GFLOP, fp8_flops: {forward: 500 MFLOP, backward_weight: 1 GFLOP}, activation: 1 "
      "MB, selective: {activation: 1 MB, flops: 4 MFLOP, fp8_flops: 4 MFLOP}");
  REQUIRE(model);
  const LayerCosts& costs = model->profile.measurements[0].layers[0];
  CHECK(costs.work->forward.fp8_flops.count == 500'000'000);
  CHECK(costs.work->backward_input.fp8_flops.count == 0);
  CHECK(costs.selective->work->fp8_flops.count == 4'000'000);
  const auto again = parse_profile(test::text_source("q.yaml", profile_yaml(*model)));
  REQUIRE(again);
  CHECK(again->profile.measurements[0].layers[0].work == costs.work);
  CHECK(again->profile.measurements[0].layers[0].selective->work == costs.selective->work);

  // Half of each forward is in fp8, at twice the peak: 1 FLOP in 1/2 + 1/4.
  DeviceRoofline both = device();
  both.fp8_peak = FlopsPerSecond{2'000'000'000'000};
  CHECK(peak_of_mix(model->profile, both).count == 1'333'333'333'333);
  CHECK(peak_of_mix(model->profile, device()) == device().peak);

  auto slow = *model;
  const auto refused = estimate_times(slow, Estimate{device(), std::nullopt, {}}, {});
  REQUIRE(refused);
  CHECK(refused->message == "layer 'a' has products in fp8, but the device has no peak for them");
  DeviceRoofline fast = device();
  fast.fp8_peak = FlopsPerSecond{2'000'000'000'000};
  REQUIRE_FALSE(estimate_times(*model, Estimate{fast, std::nullopt, {}}, {}));
  CHECK(costs.forward.mean == std::chrono::microseconds(1500));
  CHECK(costs.split->input.mean == milliseconds(2));
  CHECK(costs.split->weight.mean == milliseconds(1));
  CHECK(costs.selective->forward.mean == std::chrono::microseconds(4));
  CHECK(model->profile.estimated.find("1 TFLOP/s, 2 TFLOP/s in fp8, and of") != std::string::npos);

  for (const char* const keys :
       {"flops: {forward: 1 GFLOP}, fp8_flops: 1 GFLOP",
        "fp8_flops: 1 FLOP, forward: 1 ms, "
        "backward: 1 ms",
        "memory_traffic: 1 MB, fp8_flops: 1 FLOP",
        "flops: 1 GFLOP, activation: 1 MB, selective: {activation: 1 MB, flops: 4 FLOP, fp8_flops: "
        "5 FLOP}"}) {
    CAPTURE(keys);
    const auto wrong = parsed(keys);
    REQUIRE_FALSE(wrong);
    CHECK(wrong.problems().front().message.find("is more than") != std::string::npos);
  }
}

TEST_CASE("what goes over the network is added, too, and computing hides one thing at a time") {
  DeviceRoofline far = device();
  far.network_bandwidth = BytesPerSecond{100'000'000};
  CHECK(pass_time(work(1000, 500, 1000, 100), far) == milliseconds(2 + 1 + 1));
  CHECK(pass_time(work(1000, 500, 0, 100), far) == milliseconds(2 + 1));
  far.network_overlap = 0.5;
  CHECK(pass_time(work(1000, 500, 1000, 200), far) == milliseconds(2 + 1 + 1));
  far.link_overlap = 1;
  CHECK(pass_time(work(1000, 500, 1000, 200), far) == milliseconds(2 + 1));
  // 4 and 5 of 10 ms could be hidden, but there are 2.
  CHECK(pass_time(work(1000, 500, 4000, 1000), far) == milliseconds(2 + 4 + 10 - 2));
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
  REQUIRE_FALSE(estimate_times(*model, Estimate{device(), std::nullopt, {}}, {}));
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
    REQUIRE_FALSE(estimate_times(*model, Estimate{device(), std::nullopt, optimizer}, {}));
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
    REQUIRE_FALSE(estimate_times(*model, Estimate{device(), std::nullopt, optimizer}, {}));
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
  const auto problem = estimate_times(*model, Estimate{alone, std::nullopt, {}}, {});
  REQUIRE(problem);
  CHECK(problem->message == "layer 'a' has replicated parameters, but the device has no link");
  model->profile.measurements[0].layers[0].update_given = true;
  CHECK_FALSE(estimate_times(*model, Estimate{alone, std::nullopt, {}}, {}));
}

TEST_CASE("a ring of replicas takes the link, or between servers as many cards as it has members") {
  const auto update = [](const std::string& group, std::int64_t network,
                         std::int64_t link = 1'000'000'000) {
    auto model = parse_profile(test::text_source("p.yaml", fmt::format(R"(version: 1
kind: profile
group: {}
layers:
  - {{name: a, flops: 1 GFLOP, parameters: 4 MB, replicated: 4 MB}}
)",
                                                                       group)));
    REQUIRE_MESSAGE(model, (model ? "" : to_text(model.problems())));
    DeviceRoofline far = device();
    far.link_bandwidth = BytesPerSecond{link};
    far.network_bandwidth = BytesPerSecond{network};
    REQUIRE_FALSE(estimate_times(*model, Estimate{far, std::nullopt, {}}, {}));
    return model->profile.measurements[0].layers[0].update.mean - milliseconds(24);  // the step
  };
  constexpr std::int64_t slow = 100'000'000;
  // Eight send 2 x 7/8 x 4 MB each, pairs of a tensor-parallel group 2 x 3/4.
  CHECK(update("{devices: 8}", slow) == milliseconds(7));
  CHECK(update("{devices: 8, devices_per_server: 8}", slow) == milliseconds(7));
  CHECK(update("{devices: 8, tensor_parallel: 2}", slow) == milliseconds(6));
  CHECK(update("{devices: 8, devices_per_server: 1}", slow) == milliseconds(70));
  CHECK(update("{devices: 8, devices_per_server: 4}", slow) == std::chrono::microseconds(17'500));
  CHECK(update("{devices: 8, tensor_parallel: 2, devices_per_server: 4}", slow) ==
        milliseconds(60) / 2);
  CHECK(update("{devices: 8, tensor_parallel: 4, devices_per_server: 4}", slow) ==
        milliseconds(40));
  // Within a server it goes no faster than the link.
  CHECK(update("{devices: 8, devices_per_server: 4}", 500'000'000) == milliseconds(7));
}

TEST_CASE("traffic needs a way") {
  const auto problem = [](const std::string& group, const std::string& layer, bool link) {
    auto model = parse_profile(test::text_source(
        "p.yaml", fmt::format("version: 1\nkind: profile\ngroup: {}\nlayers:\n  - {{name: a, "
                              "flops: 1 GFLOP, {}}}\n",
                              group, layer)));
    REQUIRE_MESSAGE(model, (model ? "" : to_text(model.problems())));
    DeviceRoofline bare = device();
    if (!link) bare.link_bandwidth.reset();
    const auto found = estimate_times(*model, Estimate{bare, std::nullopt, {}}, {});
    return found ? found->message : "";
  };
  CHECK(problem("{devices: 8}", "link_traffic: 1 MB", false) ==
        "layer 'a' has link_traffic, but the device has no link");
  CHECK(problem("{devices: 8}", "network_traffic: {backward_weight: 1 MB}", true) ==
        "layer 'a' has network_traffic, but the device has no network");
  const std::string replicated = "parameters: 1 MB, replicated: 1 MB";
  CHECK(problem("{devices: 8}", replicated, false) ==
        "layer 'a' has replicated parameters, but the device has no link");
  CHECK(problem("{devices: 8}", replicated, true).empty());
  CHECK(problem("{devices: 8, devices_per_server: 4}", replicated, true) ==
        "layer 'a' has parameters replicated in several servers, but the device has no network");
  CHECK(
      problem("{devices: 8, devices_per_server: 4}", replicated + ", update: 1 ms", true).empty());
}

TEST_CASE("the memory of a preset is what a driver shows, not what is sold") {
  const auto gib = [](std::string_view name) {
    return static_cast<double>(find_device_preset(name)->memory.count) / (1 << 30);
  };
  for (const auto& [its_name, shown] :
       {std::pair{"a100-sxm-40gb", 39.50}, std::pair{"a100-sxm-80gb", 79.25},
        std::pair{"b200-sxm", 178.35}, std::pair{"gb200", 184.31}, std::pair{"h100-pcie", 79.11},
        std::pair{"h100-sxm", 79.11}, std::pair{"h200-sxm", 139.80}, std::pair{"h800-sxm", 79.11},
        std::pair{"l40s", 44.42}}) {
    const auto& name = its_name;
    CAPTURE(name);
    CHECK(gib(name) == doctest::Approx(shown).epsilon(1e-6));
  }
}

TEST_CASE("every preset has a source, sorted names and peaks that grow as numbers get shorter") {
  std::string before;
  for (const DevicePreset& preset : device_presets()) {
    CAPTURE(preset.name);
    CHECK(before < preset.name);
    before = preset.name;
    CHECK_FALSE(preset.source.empty());
    CHECK_FALSE(preset.memory_source.empty());
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
