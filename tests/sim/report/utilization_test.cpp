// A model's arithmetic per device, and its share of the device's peak.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "models/network/model_flops.h"
#include "sim/planning/predict.h"
#include "sim/report/report.h"
#include "tests/support/close_to.h"
#include "tests/support/network_scenario.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

/// Four layers whose three passes take 20 ms each on `kDevice`; nothing else takes time.
const std::string kModel = "version: 1\nmodel: {batch: 2, uniform: {layers: 4, flops: 1 TFLOP}}\n";
const std::string kDevice =
    "device: {peak: 100 TFLOP/s, memory_bandwidth: 1 TB/s, efficiency: 0.5}";

Outcome predicted(const std::string& text) {
  const auto scenario = parse_scenario(text_source("s.yaml", text), {});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  auto outcome = predict(*scenario);
  REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
  return *std::move(outcome);
}

/// On kDevice.
Outcome on_devices(int devices, const std::string& rest) {
  return predicted(kModel + "cluster: {devices: " + std::to_string(devices) + ", " + kDevice +
                   "}\n" + rest);
}

TEST_CASE("utilization is the device's efficiency for the time in which it is busy") {
  for (const char* rest :
       {"schedule: {name: gpipe, micro_batches: 8}\n", "schedule: {name: 1f1b, micro_batches: 2}\n",
        "schedule: {name: naive, micro_batches: 3, mini_batches: 2}\n",
        "schedule: {name: zb-h1, micro_batches: 8}\n",
        "schedule: {name: 1f1b, micro_batches: 5}\ntraining: {micro_batch_size: 6}\n",
        "schedule: {name: data-parallel, micro_batches: 2}\n",
        "schedule: {name: 1f1b, micro_batches: 4}\nplan: {stages: 2, data_parallel: 2}\n",
        "schedule: {name: 1f1b, micro_batches: 4}\nplan: {stages: 3}\n"}) {
    CAPTURE(rest);
    const Outcome outcome = on_devices(4, rest);
    REQUIRE(outcome.model_flops_utilization());
    CHECK(*outcome.model_flops_utilization() ==
          close_to(0.5 * (1 - outcome.metrics.bubble_fraction())));
    CHECK(*outcome.flops_per_s_per_device() == close_to(1e14 * *outcome.model_flops_utilization()));
  }
}

TEST_CASE("without a flush it is that of the steady state") {
  for (const char* plan : {"", "plan: {stages: 2, replicas: [3, 1]}\n"}) {
    CAPTURE(plan);
    const Outcome outcome =
        on_devices(4, std::string(plan) + "schedule: {name: pipedream, micro_batches: 4}\n");
    REQUIRE(outcome.metrics.steady);
    CHECK(*outcome.model_flops_utilization() ==
          close_to(0.5 * (1 - outcome.metrics.steady->bubble_fraction), 0.02));  // ops at its ends
  }
}

TEST_CASE("what is run again keeps a device busy and counts as nothing done") {
  const Outcome once = on_devices(4, "schedule: {name: 1f1b, micro_batches: 4}\n");
  const Outcome again =
      on_devices(4, "schedule: {name: 1f1b, micro_batches: 4, recompute: full}\n");
  CHECK(again.model_flops == once.model_flops);
  CHECK(*again.model_flops_utilization() ==
        close_to(0.5 * 3 / 4 * (1 - again.metrics.bubble_fraction())));
  CHECK(to_table(again, std::nullopt)
            .print()
            .find("(MFU); recomputation is not counted as useful\n") != std::string::npos);
  CHECK(to_table(once, std::nullopt)
            .print()
            .find("model FLOPs         28.57 TFLOP/s  on each device: 28.57 % of its "
                  "peak of 100 TFLOP/s (MFU)\n") != std::string::npos);
}

TEST_CASE("FLOPs of an iteration are those of its samples in all copies, forward and twice that") {
  // 1 TFLOP is the forward of two samples through one of four layers.
  CHECK(on_devices(4, "schedule: {name: gpipe, micro_batches: 8}\n").model_flops == 3 * 4 * 8e12);
  CHECK(on_devices(4,
                   "schedule: {name: gpipe, micro_batches: 8, mini_batches: 3}\n"
                   "plan: {stages: 2, data_parallel: 2}\ntraining: {micro_batch_size: 1}\n")
            .model_flops == 3 * 4 * 8e12);
  CHECK(on_devices(4, "schedule: {name: data-parallel, micro_batches: 1}\n").model_flops ==
        3 * 4 * 4e12);
}

TEST_CASE("given times win over FLOPs, and these are still what is counted") {
  const std::string timed =
      "version: 1\nmodel: {uniform: {layers: 2, flops: 1 TFLOP, forward: 10 ms, backward: 20 ms}}\n"
      "schedule: {name: gpipe, micro_batches: 1}\n";
  const Outcome known = predicted(timed + "cluster: {devices: 1, " + kDevice + "}\n");
  CHECK(*known.flops_per_s_per_device() == close_to(1e14));
  CHECK(*known.model_flops_utilization() == close_to(1));
  const Outcome no_peak = predicted(timed + "cluster: {devices: 1}\n");
  CHECK(*no_peak.flops_per_s_per_device() == close_to(1e14));
  CHECK_FALSE(no_peak.model_flops_utilization());
  const auto json = nlohmann::json::parse(to_json(no_peak, "0"));
  CHECK(json["model_flops_per_device_per_s"].get<double>() == close_to(1e14));
  CHECK(json["model_flops_utilization"].is_null());
  CHECK(to_table(no_peak, std::nullopt)
            .print()
            .find("model FLOPs           100 TFLOP/s  on each device\n") != std::string::npos);
}

TEST_CASE("a device that stands for a group gets its share of what the group does") {
  // The layers' FLOPs are those of one of four devices; all four compute 3 TFLOP of the model.
  const std::string profile =
      "version: 1\nkind: profile\ndtype: bf16\nbatch: 2\nlayers: [{name: a, flops: 1 TFLOP}]\n";
  const auto outcome_of = [&](const std::string& group) {
    const TemporaryFolder folder;
    const std::string file = folder.file("p.yaml", profile + group);
    return predicted("version: 1\nmodel: {profile: " + file + "}\ncluster: {devices: 1, " +
                     kDevice + "}\nschedule: {name: gpipe, micro_batches: 1}\n");
  };
  const Outcome once = outcome_of("group: {devices: 4, forward_flops: 3 TFLOP}\n");
  CHECK(once.iteration_time_s == close_to(0.06));
  CHECK(once.model_flops == 9e12);
  CHECK(once.devices_used() == 4);
  CHECK(*once.throughput_per_device() == close_to(2 / 0.06 / 4));
  CHECK(*once.model_flops_utilization() == close_to(0.5 * 3 / 4));
  CHECK(to_table(once, std::nullopt).print().find("1 stage on 1 group of 4 devices, ") !=
        std::string::npos);
  // Known of the group, its FLOPs need not be known of every layer.
  const TemporaryFolder folder;
  const std::string timed = folder.file(
      "p.yaml",
      "version: 1\nkind: profile\ndtype: bf16\nbatch: 2\ngroup: {forward_flops: 3 TFLOP}\n"
      "layers: [{name: a, forward: 60 ms, backward: 120 ms}]\n");
  const Outcome measured =
      predicted("version: 1\nmodel: {profile: " + timed + "}\ncluster: {devices: 1, " + kDevice +
                "}\nschedule: {name: gpipe, micro_batches: 1}\n");
  CHECK(*measured.model_flops_utilization() == close_to(0.5));
  const Outcome each = outcome_of("group: {devices: 4}\n");
  CHECK(each.model_flops == 12e12);
  CHECK(*each.model_flops_utilization() == close_to(0.5));
}

TEST_CASE("updates are estimated from what training says, and shared where their state is") {
  // 2 x 500 MB of parameters a device, at half of 1 TB/s.
  const auto update = [](const std::string& training) {
    const Outcome outcome = predicted(
        "version: 1\nmodel: {uniform: {layers: 2, flops: 1 TFLOP, parameters: 500 MB}}\n"
        "cluster: {devices: 2, " +
        kDevice +
        "}\nplan: {stages: 1, data_parallel: 2}\n"
        "schedule: {name: gpipe, micro_batches: 1}\ntraining: {" +
        training + "}\n");
    return outcome.metrics.makespan - 2 * std::chrono::milliseconds(60);
  };
  CHECK(update("gradients: 1") == std::chrono::milliseconds(6));
  CHECK(update("gradients: 2, optimizer_state: 6") == std::chrono::milliseconds(32));
  CHECK(update("gradients: 2, optimizer_state: 6, zero_stage: 1") == std::chrono::milliseconds(16));
}

TEST_CASE("where the FLOPs of a layer are unknown, nothing is said of utilization") {
  const std::string some =
      "version: 1\nmodel: {layers: [{name: a, flops: 1 TFLOP}, {name: b, forward: 1 ms, backward: "
      "1 ms}]}\ncluster: {devices: 2, " +
      kDevice + "}\n";
  const std::string none =
      "version: 1\nmodel: {uniform: {layers: 2, flops: 0 FLOP, memory_traffic: 1 GB}}\n"
      "cluster: {devices: 2, " +
      kDevice + "}\n";
  for (const std::string& text : {some, none}) {
    const Outcome outcome = predicted(text + "schedule: {name: gpipe, micro_batches: 2}\n");
    CHECK_FALSE(outcome.model_flops);
    CHECK(nlohmann::json::parse(to_json(outcome, "0"))["model_flops"].is_null());
    CHECK(to_table(outcome, std::nullopt).print().find("model FLOPs") == std::string::npos);
  }
}

TEST_CASE("a transformer's are 6 for each weight and token, and those of its scores") {
  // 6 N + 12 L a d s for each token (Chowdhery et al. 2022, appendix B), of whose scores the masked
  // half is not computed; N without the embedding, which is looked up.
  const auto scenario = read_scenario("examples/estimated-transformer.yaml", {});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  const Profile& profile = scenario->model->profile;
  double weights = 0;
  double blocks = 0;
  const LayerGraph& graph = scenario->model->graph;
  for (std::uint32_t i = 1; i < graph.size(); ++i) {
    weights += static_cast<double>(graph.layer({i}).parameters.count) / 2;
    if (graph.layer({i}).kind == "block") ++blocks;
  }
  const double tokens = 4096;
  const double heads = 24 * 128;
  const double wanted = tokens * (6 * weights + 6 * blocks * heads * tokens);
  CHECK(blocks == 30);
  CHECK(*model_flops(profile, 1) == close_to(wanted, 1e-3));
  CHECK(*model_flops(profile, 4) == close_to(4 * *model_flops(profile, 1)));
}

TEST_CASE("what is really executed knows its FLOPs") {
  const Scenario scenario = network_scenario(
      "version: 1\nkind: network\nname: n\ninput: {shape: [10]}\nlayers:\n"
      "  - {name: a, kind: linear, features: 20, bias: false}\n"
      "  - {name: b, kind: linear, features: 5, bias: false}\n",
      "cluster: {devices: 2}\nschedule: {name: gpipe, micro_batches: 4}\n");
  const auto outcome = predict(scenario);
  REQUIRE(outcome);
  const double products = 10 * 20 + 20 * 5;
  CHECK(*outcome->model_flops == 3 * 2 * products * 3 * 4);  // 4 micro-batches of 3 samples
  CHECK(*outcome->flops_per_s_per_device() ==
        close_to(*outcome->model_flops / outcome->iteration_time_s / 2));
  CHECK_FALSE(outcome->model_flops_utilization());
}

}  // namespace
}  // namespace plumbline::test
