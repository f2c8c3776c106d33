// The times of kernels follow a scenario's plan and cluster.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/kernel_setting.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/scenario/recomputation.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_source.h"
#include "tests/support/transformers.h"

namespace plumbline {
namespace {

using std::chrono::microseconds;

/// A scenario of a llama of two blocks.
Scenario scenario_of(const std::string& rest, const std::vector<std::string>& overrides = {}) {
  const test::TemporaryFolder folder;
  const std::string text = fmt::format("version: 1\nmodel: {{huggingface: {}, sequence: 64}}\n{}",
                                       folder.file("llama.json", test::kLlama), rest);
  auto scenario = parse_scenario(test::text_source("s.yaml", text), overrides);
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  return *std::move(scenario);
}

const LayerCosts& block_of(const Scenario& scenario) {
  return scenario.model->profile.measurements[0].layers[1];
}

TEST_CASE("a stack's wait between ops goes by the stages, however the plan gives them") {
  const std::string cluster =
      "cluster: {devices: 4, link: device, device: {preset: a100-sxm-80gb, stack: "
      "megatron-2022}}\n";
  const auto wait = [&](const std::string& plan, const std::vector<std::string>& overrides = {}) {
    return scenario_of(cluster + plan, overrides).overheads.per_op;
  };
  const std::string pipeline = "schedule: {name: 1f1b, micro_batches: 4}\n";
  CHECK(wait("plan: {stages: 2}\n" + pipeline) == microseconds(300));
  CHECK(wait("plan: {partition: [2, 2]}\n" + pipeline) == microseconds(300));
  CHECK(wait("plan: {}\n" + pipeline) == microseconds(300));  // a stage a device
  CHECK(wait("plan: {stages: 1}\n" + pipeline) == microseconds(0));
  CHECK(wait("schedule: {name: data-parallel, micro_batches: 2}\n") == microseconds(0));
  CHECK(wait("plan: {stages: 2}\n" + pipeline, {"overhead.per_op=0 us"}) == microseconds(0));
}

TEST_CASE("weights that a pipeline's copies share travel with micro-batches in stage 3 alone") {
  const auto forward = [](const std::string& plan, int stage) {
    const Scenario scenario = scenario_of(
        fmt::format("cluster: {{gpus: 8, device: {{preset: h100-sxm, stack: torch-compile}}}}\n"
                    "plan: {}\nschedule: {{name: 1f1b, micro_batches: 2}}\n"
                    "training: {{zero_stage: {}}}\n",
                    plan, stage));
    return block_of(scenario).forward.mean;
  };
  const std::string one = "{stages: 1, data_parallel: 8}";
  CHECK(forward(one, 2) > forward(one, 1));
  CHECK(forward(one, 3) == forward(one, 2));
  for (const std::string two :
       {"{stages: 2, data_parallel: 4}", "{partition: [2, 2], data_parallel: fill}"}) {
    CAPTURE(two);
    CHECK(forward(two, 2) == forward(two, 1));
    CHECK(forward(two, 3) > forward(two, 2));
  }
}

TEST_CASE("copies gather over the cards between their servers, however the cluster gives these") {
  const auto forward = [](const std::string& cluster) {
    const Scenario scenario = scenario_of(fmt::format(
        "cluster: {{{}, device: {{preset: h100-sxm, stack: torch-compile, network: 5 GB/s}}}}\n"
        "schedule: {{name: data-parallel, micro_batches: 2}}\ntraining: {{zero_stage: 3}}\n",
        cluster));
    return block_of(scenario).forward.mean;
  };
  const Duration in_server = forward("gpus: 16");
  const Duration far = forward("gpus: 16, gpus_per_server: 8");
  CHECK(far > in_server);
  CHECK(forward("levels: [{size: 8, bandwidth: 450 GB/s}, "
                "{size: 2, cards: each, bandwidth: 5 GB/s}]") == far);
  CHECK(forward("levels: [{size: 8, bandwidth: 450 GB/s}, "
                "{size: 2, bandwidth: 5 GB/s}]") > far);  // one card for all
  // A third level counts where the ring reaches it.
  const auto of_three = [&](const std::string& outer) {
    return forward(
        "levels: [{size: 4, bandwidth: 450 GB/s}, {size: 2, cards: each, bandwidth: 450 "
        "GB/s}, {size: 2, " +
        outer + "}]");
  };
  CHECK(of_three("cards: each, bandwidth: 5 GB/s") >= far);
  CHECK(of_three("bandwidth: 5 GB/s") > of_three("cards: each, bandwidth: 5 GB/s"));
  CHECK(forward("devices: 16, link: {bandwidth: 450 GB/s}") == in_server);
  CHECK(forward("devices: 16, link: network") > far);
}

TEST_CASE("a block that is recomputed by itself ends before its last product, a stage does not") {
  const auto skipped = [](const std::string& stack, const std::string& recompute) {
    return block_of(scenario_of(fmt::format(
                        "cluster: {{devices: 2, link: device, device: {{preset: h100-sxm, stack: "
                        "{}}}}}\nschedule: {{name: 1f1b, micro_batches: 4, recompute: {}}}\n",
                        stack, recompute)))
        .skipped;
  };
  CHECK(skipped("torch-compile", "layers").count() > 0);
  CHECK(skipped("torch-compile", "full").count() == 0);
  CHECK(skipped("megatron-core", "layers").count() == 0);
}

TEST_CASE("recompute_layers counts layers that can be recomputed") {
  std::vector<LayerCosts> layers(4);
  layers[0].recomputation = Recomputed::nothing;  // an embedding
  Partition partition;
  partition.stages.resize(2);
  partition.stages[0].layers = {{0}, {1}, {2}};
  partition.stages[1].layers = {{3}};
  keep_others(partition, {1, 0}, layers);
  CHECK(layers[0].recomputation == Recomputed::nothing);
  CHECK(layers[1].recomputation == Recomputed::all);
  CHECK(layers[2].recomputation == Recomputed::nothing);
  CHECK(layers[3].recomputation == Recomputed::nothing);
}

TEST_CASE("products in a model of fp8 run at the peak that is given for it") {
  const Scenario scenario = scenario_of(
      "cluster: {devices: 2, link: device, device: {peak: 1979 TFLOP/s, memory_bandwidth: 3 TB/s, "
      "link: 450 GB/s}}\nschedule: {name: 1f1b, micro_batches: 4}\n",
      {"model.dtype=fp8"});
  CHECK(block_of(scenario).forward.mean < std::chrono::milliseconds(1));
}

}  // namespace
}  // namespace plumbline
