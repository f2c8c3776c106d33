// Tied tables: counted once where one device uses them twice, added up where two devices hold them.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "models/profile/profile_reader.h"
#include "models/profile/profile_writer.h"
#include "sim/prediction/predict_resolved.h"
#include "tests/support/outcome_of.h"
#include "tests/support/scenario_of.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

/// An embedding, blocks and a head, whose table of 100 MB is the embedding's. 8 MB of the head are
/// its own.
std::string model(const std::string& tied, int blocks = 2, const std::string& head = "108 MB",
                  const std::string& update = "27 ms") {
  std::string layers =
      "{name: embedding, forward: 1 ms, backward: 2 ms, output: 1 MB, parameters: 100 MB, "
      "update: 25 ms}";
  for (int i = 0; i < blocks; ++i) {
    layers += fmt::format(
        ", {{name: b{}, forward: 1 ms, backward: 2 ms, output: 1 MB, parameters: 40 MB, "
        "update: 10 ms}}",
        i);
  }
  return "version: 1\nmodel: {layers: [" + layers +
         ", {name: head, forward: 1 ms, backward: 2 ms, parameters: " + head +
         ", update: " + update + tied + "}]}\n";
}

const std::string kTied = ", tied: {to: embedding, parameters: 100 MB}";

/// The model's table is there once: as in a model whose head has only its own 8 MB.
void check_once(const std::string& rest) {
  CAPTURE(rest);
  const Outcome tied = outcome_of(model(kTied) + rest);
  const Outcome once = outcome_of(model("", 2, "8 MB", "2 ms") + rest);
  CHECK(tied.metrics.makespan == once.metrics.makespan);
  CHECK(tied.memory[0].peak.sum() == once.memory[0].peak.sum());
}

Duration makespan_of(const std::string& text) { return outcome_of(text).metrics.makespan; }

}  // namespace

TEST_CASE("on one device a tied table is there once: weights, gradients, state and update") {
  const std::string rest =
      "cluster: {devices: 1}\nschedule: {name: gpipe, micro_batches: 2}\n"
      "training: {optimizer_state: 6, gradients: 2}\n";
  check_once(rest);
  const Outcome tied = outcome_of(model(kTied) + rest);
  CHECK(tied.memory[0].peak.weights == Bytes{188'000'000});
  CHECK(tied.memory[0].peak.optimizer == Bytes{6 * 188'000'000LL});
  const Outcome apart = outcome_of(model("") + rest);
  CHECK(apart.memory[0].peak.weights == Bytes{288'000'000});
}

TEST_CASE("copies reduce the gradients of a table once where it is there once") {
  const std::string rest =
      "cluster: {devices: 2, link: {bandwidth: 1 GB/s}}\nplan: {stages: 1, data_parallel: 2}\n"
      "schedule: {name: gpipe, micro_batches: 2";
  for (const char* const more : {"}\n", ", bucket: 20 MB}\n"}) {
    for (const char* const zero : {"0", "1", "2", "3"}) {
      CAPTURE(more);
      const std::string training = fmt::format("training: {{zero_stage: {}}}\n", zero);
      check_once(rest + more + training);
    }
  }
}

TEST_CASE("two devices add up the gradients of their copies behind the flush") {
  const std::string cluster = "cluster: {devices: 4, link: {bandwidth: 1 GB/s, latency: 5 us}}\n";
  for (const char* const schedule : {"1f1b", "gpipe", "zb-h1"}) {
    CAPTURE(schedule);
    const std::string rest =
        cluster + fmt::format("schedule: {{name: {}, micro_batches: 8}}\n", schedule);
    const Duration tied = makespan_of(model(kTied) + rest);
    const Duration apart = makespan_of(model("") + rest);
    // A ring of two: each sends 100 MB at 1 GB/s, in two steps.
    CHECK(tied - apart == std::chrono::microseconds(100'010));
    const Outcome outcome = outcome_of(model(kTied) + rest);
    CHECK(outcome.memory[3].peak.weights == Bytes{108'000'000});
    CHECK(outcome.memory[0].peak.weights == Bytes{100'000'000});
  }
}

TEST_CASE("each copy of the pipeline adds up its own tables, after the copies have") {
  const std::string rest =
      "cluster: {devices: 8, link: {bandwidth: 1 GB/s}}\nplan: {stages: 4, data_parallel: 2}\n"
      "schedule: {name: 1f1b, micro_batches: 4}\n";
  // Of the stages the head's has most gradients to reduce, 108 MB. The tables follow.
  CHECK(makespan_of(model(kTied) + rest) - makespan_of(model("") + rest) ==
        std::chrono::milliseconds(100));
}

TEST_CASE("gradients in fp32 of bf16 tables are twice as many bytes") {
  const std::string rest =
      "cluster: {devices: 4, link: {bandwidth: 1 GB/s}}\nschedule: {name: 1f1b, micro_batches: "
      "4}\ntraining: {gradients: 2}\n";
  CHECK(makespan_of(model(kTied) + rest) - makespan_of(model("") + rest) ==
        std::chrono::milliseconds(200));
}

TEST_CASE("a device with both ends of a V holds the table once, and sends nothing") {
  const std::string rest =
      "cluster: {devices: 2, link: {bandwidth: 1 GB/s}}\nplan: {stages: 4}\n"
      "schedule: {name: zb-v, chunks: 2, micro_batches: 4}\n";
  check_once(rest);
}

TEST_CASE("both ends of pipelines that run both ways stand on the same devices") {
  const std::string rest =
      "cluster: {devices: 2, link: {bandwidth: 1 GB/s}}\nplan: {stages: 2}\n"
      "schedule: {name: chimera, micro_batches: 4}\n";
  check_once(rest);
}

TEST_CASE("without a flush both stages wait for their table, and no other stage does") {
  const std::string rest =
      "cluster: {devices: 4, link: {bandwidth: 1 GB/s}}\nschedule: {name: 1f1b, micro_batches: "
      "8}\ntraining: {flush: none}\n";
  const Outcome tied = outcome_of(model(kTied) + rest);
  const Outcome apart = outcome_of(model("") + rest);
  CHECK(*tied.metrics.period > *apart.metrics.period);
  CHECK(*tied.metrics.period <= *apart.metrics.period + std::chrono::milliseconds(100));
}

TEST_CASE("a config.json says that its head is tied, and a profile keeps it") {
  const std::string text =
      "version: 1\nmodel: {huggingface: tests/architectures/configs/ernie-4.5-0.3b.json, sequence: "
      "1024}\n"
      "cluster: {gpus: 1, device: h100-sxm}\nschedule: {name: gpipe, micro_batches: 2}\n";
  const Scenario scenario = scenario_of(text);
  const std::vector<Layer>& layers = scenario.model->graph.layers();
  CHECK(layers.back().tied_to == layers.front().name);
  CHECK(layers.back().tied.count > 0);
  const auto outcome = predict_resolved(scenario);
  REQUIRE(outcome);
  Bytes sum;
  for (const Layer& layer : layers) sum += layer.parameters;
  CHECK(outcome->memory[0].peak.weights == sum - layers.back().tied);
  const auto again = parse_profile(text_source("p.yaml", profile_yaml(*scenario.model)));
  REQUIRE(again);
  CHECK(again->graph.layers().back().tied_to == layers.back().tied_to);
  CHECK(again->graph.layers().back().tied == layers.back().tied);
}

TEST_CASE("wrong ties are refused") {
  const auto error_of = [](const std::string& tied) {
    const auto scenario = parse_scenario(
        text_source(
            "s.yaml",
            model(tied) + "cluster: {devices: 1}\nschedule: {name: gpipe, micro_batches: 2}\n"),
        {});
    return scenario ? std::string() : to_text(scenario.problems());
  };
  const auto says = [](const std::string& error, const std::string& part) {
    CAPTURE(error);
    CHECK(error.find(part) != std::string::npos);
  };
  CHECK(error_of(kTied).empty());
  says(error_of(", tied: {to: embeding, parameters: 100 MB}"), "tied to 'embeding', which is no");
  says(error_of(", tied: {to: head, parameters: 100 MB}"), "which is the layer itself");
  says(error_of(", tied: {to: b0, parameters: 100 MB}"), "are less than a table of");
  says(error_of(", tied: {to: embedding, parameters: 1 GB}"), "more than the 108000000 B");
  says(error_of(", tied: {to: embedding}"), "parameters is missing");
}

}  // namespace plumbline::test
