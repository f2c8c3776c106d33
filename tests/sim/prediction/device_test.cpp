// cluster.device of a scenario: estimated times, memory and links.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "sim/prediction/predict_resolved.h"
#include "sim/scenario/scenario_text.h"
#include "tests/support/close_to.h"
#include "tests/support/text_source.h"

namespace plumbline {
namespace {

Outcome outcome_of(const std::string& cluster, const std::string& more_keys = "",
                   const std::vector<std::string>& overrides = {}) {
  const auto scenario = parse_scenario(
      test::text_source("s.yaml",
                        "version: 1\nmodel: {batch: 1, uniform: {layers: 2, flops: 1 "
                        "TFLOP, output: 1 GB" +
                            more_keys + "}}\ncluster: {" + cluster +
                            "}\nschedule: {name: naive, micro_batches: 1}\n"),
      overrides);
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  auto outcome = predict_resolved(*scenario);
  REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
  return *std::move(outcome);
}

const std::string kDevice =
    "devices: 2, device: {peak: 100 TFLOP/s, memory_bandwidth: 1 TB/s, "
    "link: 1 GB/s, memory: 3 GiB}";

TEST_CASE("times follow from the device, and are told as estimated") {
  // 1 TFLOP at half of 100 TFLOP/s: 20 ms for each of F, I and W of two layers.
  const Outcome outcome = outcome_of(kDevice);
  CHECK(outcome.iteration_time_s == test::close_to(0.12));
  REQUIRE(outcome.setup.estimated.size() == 1);
  CHECK(outcome.setup.estimated[0] ==
        "layer times: from FLOPs and bytes, by a roofline of the given device: 50 % of 100 TFLOP/s "
        "and of 1000 GB/s");
  CHECK(outcome.setup.cluster.memory == Bytes{std::int64_t{3} << 30});
  CHECK(outcome_of(kDevice, "", {"cluster.device.efficiency=1"}).iteration_time_s ==
        test::close_to(0.06));
  CHECK(outcome_of(kDevice, "", {"cluster.memory=5 GiB"}).setup.cluster.memory ==
        Bytes{std::int64_t{5} << 30});
}

TEST_CASE("micro-batches of another size scale what was estimated, and both are told") {
  const Outcome outcome = outcome_of(kDevice, "", {"training.micro_batch_size=2"});
  CHECK(outcome.iteration_time_s == test::close_to(0.24));
  CHECK(outcome.setup.estimated[0].ends_with(
      "; layer costs: scaled linearly to micro-batches of 2 from a batch of 1"));
}

TEST_CASE("the device's own links are taken where they are asked for") {
  // 1 GB each way at 1 GB/s.
  CHECK(outcome_of(kDevice + ", link: device").iteration_time_s == test::close_to(2.12));
}

TEST_CASE("given times win over FLOPs, and nothing is estimated") {
  const Outcome outcome = outcome_of(kDevice, ", forward: 1 ms, backward: 2 ms");
  CHECK(outcome.iteration_time_s == test::close_to(0.006));
  CHECK(outcome.setup.estimated.empty());
}

TEST_CASE("the peak of a preset is that of the model's number format") {
  const auto time_of = [](const std::string& dtype) {
    return outcome_of("devices: 2, device: h100-sxm", "", {"model.dtype=" + dtype})
        .iteration_time_s;
  };
  CHECK(time_of("fp16") == test::close_to(6 / (0.5 * 989.5)));
  CHECK(time_of("fp32") == test::close_to(6 / (0.5 * 67)));
  CHECK(time_of("fp8") == test::close_to(6 / (0.5 * 1979)));
}

TEST_CASE("a key of a device that stands there by its name goes beside the name") {
  const auto time_of = [](const std::vector<std::string>& overrides) {
    return outcome_of("devices: 2, device: h100-sxm", "", overrides).iteration_time_s;
  };
  const double of_preset = 6 / (0.5 * 989.5);
  CHECK(time_of({"cluster.device.efficiency=0.25"}) == test::close_to(2 * of_preset));
  CHECK(time_of({"cluster.device.efficiency=0.25", "cluster.device.peak=1979 TFLOP/s"}) ==
        test::close_to(of_preset));
  CHECK(time_of({"cluster.device.preset=a100-sxm-80gb"}) == test::close_to(6 / (0.5 * 312)));
  CHECK(time_of({"cluster.device=a100-sxm-80gb", "cluster.device.efficiency=1"}) ==
        test::close_to(6 / 312.0));
  // The same for the points of a sweep.
  const auto text = ScenarioText::parse(test::text_source(
      "s.yaml",
      "version: 1\nmodel: {uniform: {layers: 2, flops: 1 TFLOP}}\ncluster: {device: "
      "h100-sxm}\nschedule: {name: naive, micro_batches: 1}\n"));
  REQUIRE(text);
  const auto change = parse_override("cluster.device.efficiency=0.25");
  REQUIRE(change);
  const auto scenario = text->read({&*change});
  REQUIRE(scenario);
  CHECK(scenario->peak == FlopsPerSecond{989'500'000'000'000});
}

}  // namespace
}  // namespace plumbline
