// A config.json where a scenario is asked for.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/bare_model.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/scenario/axes.h"
#include "sim/scenario/scenario_text.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

const std::string kConfig =
    R"({"model_type": "llama", "hidden_size": 1024, "intermediate_size": 2816,
        "num_hidden_layers": 8, "num_attention_heads": 16, "num_key_value_heads": 4,
        "vocab_size": 32000, "max_position_embeddings": 4096})";

const std::vector<std::string> kMachine = {"cluster.gpus=16", "cluster.device=h100-sxm"};

std::vector<std::string> with(std::vector<std::string> overrides) {
  overrides.insert(overrides.begin(), kMachine.begin(), kMachine.end());
  return overrides;
}

YamlNode tree(const std::string& text) {
  auto root = parse_yaml(text_source("config.json", text));
  REQUIRE(root);
  return *std::move(root);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a config.json is told from a scenario, a result and a file of another kind") {
  CHECK(is_bare_model(tree(kConfig)));
  CHECK(is_bare_model(tree(R"({"architectures": ["LlamaForCausalLM"]})")));
  CHECK_FALSE(is_bare_model(tree("version: 1\nmodel: {uniform: {layers: 2}}\n")));
  CHECK_FALSE(is_bare_model(tree("model_type: llama\nschedule: {name: 1f1b}\n")));
  CHECK_FALSE(is_bare_model(tree("[1, 2]")));
  CHECK_FALSE(is_bare_model(tree("kind: network\n")));
}

TEST_CASE("a config.json with a machine is the scenario that its note tells") {
  const TemporaryFolder folder;
  const std::string path = folder.file("tiny/config.json", kConfig);
  const auto bare = read_scenario(path, with({"model.tensor_parallel=2", "plan.stages=4"}));
  REQUIRE_MESSAGE(bare, (bare ? "" : to_text(bare.problems())));
  CHECK(bare->name == "tiny");  // config.json is everybody's name
  const std::string written =
      "version: 1\nname: tiny\n"
      "model: {huggingface: config.json, sequence: 4096, tensor_parallel: 2, sequence_parallel: "
      "true}\n"
      "cluster: {gpus: 16, gpus_per_server: 8, reserve: 6 GiB, device: h100-sxm}\n"
      "plan: {stages: 4, data_parallel: fill}\n"
      "schedule: {name: 1f1b, bucket: 160 MB}\n"
      "training: {mini_batch_size: 1024, micro_batch_size: 1, gradients: 2, optimizer_state: 6,\n"
      "  zero_stage: 1, gather: with-forward}\n";
  const auto whole = read_scenario(folder.file("tiny/whole.yaml", written), {});
  REQUIRE_MESSAGE(whole, (whole ? "" : to_text(whole.problems())));
  CHECK(bare->copies == whole->copies);
  CHECK(bare->micro_batch_size == whole->micro_batch_size);
  CHECK(bare->schedule.micro_batches == whole->schedule.micro_batches);
  CHECK(bare->optimizer_state == whole->optimizer_state);
  CHECK(bare->gradient_width == whole->gradient_width);
  CHECK(bare->sharing.state == whole->sharing.state);
  CHECK(bare->min_bucket() == whole->min_bucket());
  REQUIRE(bare->plan.stages);
  REQUIRE(whole->plan.stages);
  CHECK(bare->plan.stages->value == whole->plan.stages->value);
  CHECK(bare->cluster.levels.size() == whole->cluster.levels.size());
  const auto& layers = bare->model->graph.layers();
  REQUIRE(layers.size() == whole->model->graph.layers().size());
  for (std::size_t i = 0; i < layers.size(); ++i)
    CHECK(layers[i].parameters == whole->model->graph.layers()[i].parameters);

  // The first note is the only difference. It has what was assumed, and not what was given.
  REQUIRE(bare->notes.size() == whole->notes.size() + 1);
  CHECK(std::vector<std::string>(bare->notes.begin() + 1, bare->notes.end()) == whole->notes);
  const std::string& note = bare->notes.front();
  CHECK(contains(note, "assumed"));
  CHECK(contains(note, "model.sequence=4096"));  // what the model takes
  CHECK(contains(note, "training.mini_batch_size=1024"));
  CHECK_FALSE(contains(note, "plan.stages"));
  CHECK_FALSE(contains(note, "tensor_parallel"));
}

TEST_CASE("long sequences are cut to what is usual, and batches follow") {
  const TemporaryFolder folder;
  std::string config = kConfig;
  config.replace(config.find("4096"), 4, "131072");
  const auto scenario = read_scenario(folder.file("long.json", config), kMachine);
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  CHECK(scenario->name == "long");
  CHECK(contains(scenario->notes.front(), "model.sequence=8192"));
  CHECK(contains(scenario->notes.front(), "training.mini_batch_size=512"));
}

TEST_CASE("what replaces all assumptions leaves no note") {
  OpenedScenario opened = opened_scenario(tree(kConfig), BareLayout::open);
  CHECK(assumption_note(opened.assumed, opened.root));
  for (const std::string& key : opened.assumed)
    CHECK_FALSE(apply_override(opened.root, key + "=1"));
  CHECK_FALSE(assumption_note(opened.assumed, opened.root));
  // A search gets no layout.
  for (const std::string& assumed : opened.assumed) {
    CHECK_FALSE(contains(assumed, "plan."));
    CHECK_FALSE(contains(assumed, "schedule.name"));
    CHECK_FALSE(contains(assumed, "micro_batch_size"));
  }
}

TEST_CASE("assumptions fit to what is given") {
  const TemporaryFolder folder;
  std::string config = kConfig;
  const std::string path = folder.file("config.json", config);
  const auto note = [&](const std::vector<std::string>& overrides) {
    const auto scenario = read_scenario(path, overrides);
    REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
    return scenario->notes.front();
  };
  const std::string h100 = "cluster.device=h100-sxm";
  // Copies divide the mini-batch.
  CHECK(contains(note({"cluster.gpus=24", h100}), "training.mini_batch_size=1032,"));
  CHECK(contains(note({"cluster.gpus=2048", h100}), "training.mini_batch_size=2048,"));
  // The number of micro-batches decides their size, and that of copies the stages.
  CHECK_FALSE(
      contains(note({"cluster.gpus=8", h100, "schedule.micro_batches=8"}), "micro_batch_size"));
  CHECK_FALSE(contains(note({"cluster.gpus=8", h100, "plan.data_parallel=2"}), "plan.stages"));
  // NVLink joins more GPUs of some devices, and devices are no GPUs in servers.
  CHECK(contains(note({"cluster.gpus=64", "cluster.device=gb200"}), "gpus_per_server=64"));
  CHECK(contains(note({"cluster.gpus=144", "cluster.device=gb300"}), "gpus_per_server=72"));
  CHECK_FALSE(contains(note({"cluster.devices=8", h100}), "gpus_per_server"));
}

TEST_CASE("a machine is never assumed") {
  const TemporaryFolder folder;
  const std::string path = folder.file("config.json", kConfig);
  const auto none = read_scenario(path, {});
  REQUIRE_FALSE(none);
  CHECK(contains(none.problems().front().message, "cluster.gpus and cluster.device are missing"));
  const auto no_device = read_scenario(path, {"cluster.gpus=8"});
  REQUIRE_FALSE(no_device);
  CHECK(contains(no_device.problems().front().message, "cluster.device is missing"));
  // A sweep reads its text once, and says the same.
  const auto text = ScenarioText::open(path);
  REQUIRE(text);
  const auto swept = text->read({});
  REQUIRE_FALSE(swept);
  CHECK(swept.problems().front().message == none.problems().front().message);
}

TEST_CASE("a sweep of a config.json reads what one run reads") {
  const TemporaryFolder folder;
  const auto text = ScenarioText::open(folder.file("config.json", kConfig));
  REQUIRE(text);
  std::vector<YamlOverride> changes;
  std::vector<const YamlOverride*> given;
  for (const std::string& one : with({"plan.stages=2"})) {
    auto change = parse_override(one);
    REQUIRE(change);
    changes.push_back(*std::move(change));
  }
  given.reserve(changes.size());
  for (const YamlOverride& change : changes) given.push_back(&change);
  const auto swept = text->read(given);
  REQUIRE_MESSAGE(swept, (swept ? "" : to_text(swept.problems())));
  const auto once = read_scenario(folder["config.json"], with({"plan.stages=2"}));
  REQUIRE(once);
  CHECK(swept->notes == once->notes);
  CHECK(swept->schedule.micro_batches == once->schedule.micro_batches);
}

TEST_CASE("the network of a preset is that of its maker's system, and a note says so") {
  const auto read = [](const std::string& device) {
    return parse_scenario(text_source("s.yaml",
                                      "version: 1\nmodel: {layers: [{name: a, flops: 1 TFLOP}]}\n"
                                      "cluster: {gpus: 16, gpus_per_server: 8, device: " +
                                          device + "}\nschedule: {name: 1f1b, micro_batches: 1}\n"),
                          {});
  };
  const auto assumed = read("a100-sxm-80gb");
  REQUIRE_MESSAGE(assumed, (assumed ? "" : to_text(assumed.problems())));
  REQUIRE(assumed->cluster.levels.size() == 2);
  CHECK(assumed->cluster.levels[1].link.bandwidth->count == 25'000'000'000);
  CHECK(contains(assumed->notes.front(), "25 GB/s: ConnectX-6"));
  const auto given = read("{preset: a100-sxm-80gb, network: 12 GB/s}");
  REQUIRE(given);
  CHECK(given->cluster.levels[1].link.bandwidth->count == 12'000'000'000);
  for (const std::string& note : given->notes) CHECK_FALSE(contains(note, "ConnectX"));
}

}  // namespace
}  // namespace plumbline::test
