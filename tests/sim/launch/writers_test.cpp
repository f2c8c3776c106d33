// Launches written for each launcher, and read back.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "base/json_tree.h"
#include "base/toml_tree.h"
#include "sim/launch/deepspeed_reader.h"
#include "sim/launch/launch_writers.h"
#include "sim/launch/megatron_reader.h"
#include "sim/launch/nanotron_reader.h"
#include "sim/launch/torchtitan_names.h"
#include "sim/launch/torchtitan_reader.h"
#include "sim/planning/planning.h"
#include "sim/planning/predict.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

/// A llama with 32 blocks on 64 GPUs.
struct Run {
  Run() { config = folder.file("config.json", config_of(*find_torchtitan_model("llama3", "8B"))); }

  /// The launch of the scenario with these overrides.
  ScenarioLaunch launch(const std::vector<std::string>& overrides) const {
    const auto scenario = read_scenario(
        folder.file("run.yaml",
                    "version: 1\nmodel: {huggingface: config.json, sequence: 4096}\n"
                    "cluster: {gpus: 64, gpus_per_server: 8, device: h100-sxm}\n"
                    "plan: {stages: 1, partition: blocks, data_parallel: fill}\n"
                    "schedule: {name: 1f1b}\n"
                    "training: {mini_batch_size: 256, micro_batch_size: 1, gradients: 2, "
                    "tokens: 1048576000}\n"),
        overrides);
    REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
    const auto resolved = resolve_plan(*scenario);
    REQUIRE_MESSAGE(resolved, (resolved ? "" : to_text(resolved.problems())));
    const auto setup = resolve_setup(*resolved, /*for_run=*/false);
    REQUIRE_MESSAGE(setup, (setup ? "" : to_text(setup.problems())));
    const auto made = launch_of(*resolved, *setup);
    REQUIRE_MESSAGE(made, (made ? "" : to_text(made.problems())));
    return *made;
  }

  Result<ReadLaunch> again(const std::string& launcher, const std::string& text) const {
    Diagnostics problems;
    LaunchArguments arguments(problems);
    const LaunchGiven given{launcher == "nanotron" || launcher == "torchtitan" ? "" : config, 64};
    const auto source = text_source("emitted", text);
    const auto tree = launcher == "torchtitan"  ? parse_toml(source)
                      : launcher == "deepspeed" ? parse_json(source)
                                                : parse_yaml(source);
    REQUIRE_MESSAGE(tree, (tree ? "" : to_text(tree.problems())));
    arguments.add_tree(*tree, /*by_path=*/launcher != "nemo");
    if (launcher == "nemo") return read_megatron(std::move(arguments), problems, given);
    if (launcher == "nanotron") return read_nanotron(std::move(arguments), problems, given);
    if (launcher == "torchtitan") return read_torchtitan(std::move(arguments), problems, given);
    return read_deepspeed(std::move(arguments), problems, given, 4096);
  }

  TemporaryFolder folder;
  std::string config;
};

/// What every launcher says of a run.
void check_same(const Launch& now, const Launch& before) {
  CHECK(now.gpus == before.gpus);
  CHECK(now.tensor == before.tensor);
  CHECK(now.context == before.context);
  CHECK(now.pipeline == before.pipeline);
  CHECK(now.micro_batch_size == before.micro_batch_size);
  CHECK(now.mini_batch_size == before.mini_batch_size);
  CHECK(now.sequence == before.sequence);
  CHECK(now.dtype == before.dtype);
  CHECK(now.recompute == before.recompute);
  CHECK(now.gradients == before.gradients);
  CHECK(now.expert == before.expert);
  CHECK(now.chunks == before.chunks);
  CHECK(now.fp8 == before.fp8);
}

/// What torchtitan makes of sharing: weights are always shared between mini-batches.
Sharing in_torchtitan(const Launch& launch) {
  Sharing sharing = launch.sharing;
  if (!sharing.shares()) return sharing;
  sharing.frees_after_forward = sharing.state == Sharded::weights;
  sharing.state = Sharded::weights;
  sharing.frees_after_backward = launch.pipeline == 1;
  if (launch.pipeline > 1) sharing.reduction = Reduction::behind_last_backward;
  return sharing;
}

TEST_CASE("copies that share in groups are written, and read back") {
  const Run run;
  const ScenarioLaunch three =
      run.launch({"training.zero_stage=3", "training.shard_degree=8", "training.prefetch=2"});
  const ScenarioLaunch one = run.launch({"training.zero_stage=1", "training.shard_degree=8"});
  const auto again = [&](const std::string& launcher, const ScenarioLaunch& made) {
    const auto emitted = emitted_launch(launcher, made);
    REQUIRE_MESSAGE(emitted, (emitted ? "" : to_text(emitted.problems())));
    CAPTURE(emitted->text);
    const auto read = run.again(launcher, emitted->text);
    REQUIRE_MESSAGE(read, (read ? "" : to_text(read.problems())));
    CHECK(read->not_modelled.empty());
    return read->launch.sharing.degree;
  };
  CHECK(again("torchtitan", three) == 8);
  CHECK(again("deepspeed", three) == 8);
  CHECK(again("nemo", one) == 8);
  const auto notes = [&](const std::string& launcher, const ScenarioLaunch& made) {
    const auto emitted = emitted_launch(launcher, made);
    REQUIRE(emitted);
    std::string all = emitted->text;
    for (const std::string& note : emitted->notes) all += note + '\n';
    return all;
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(has(notes("megatron", one), "--num-distributed-optimizer-instances 8"));
  CHECK(has(notes("nanotron", one), "nanotron has no key for training.shard_degree"));
  CHECK(has(notes("deepspeed", one), "DeepSpeed has no key for training.shard_degree: 8"));
  CHECK(has(notes("nemo", three), "Megatron-Bridge has no key for training.prefetch: 2"));
  CHECK(has(notes("torchtitan", three), "gathers weights one block ahead"));
  CHECK(has(notes("torchtitan", one), "without a pipeline torchtitan reduces in each backward"));
  const std::vector<std::string> pipelined = {"plan.stages=4", "training.zero_stage=3",
                                              "training.reshard=after-mini-batch",
                                              "training.reduce=behind-last-backward"};
  CHECK_FALSE(has(notes("torchtitan", run.launch(pipelined)), "other than predicted"));
}

TEST_CASE("what is written for a launcher is read back as the same run") {
  const Run run;
  const std::vector<std::string> tensor = {"model.tensor_parallel=4",
                                           "model.sequence_parallel=true"};
  const std::vector<std::vector<std::string>> layouts = {
      {},
      {"training.zero_stage=1"},
      {"training.zero_stage=3", "training.micro_batch_size=2"},
      {"plan.stages=4", "training.zero_stage=1"},
      {"plan.stages=4", "schedule.recompute=layers", "training.zero_stage=1"},
      {tensor[0], tensor[1], "plan.stages=2", "training.micro_batch_size=2",
       "training.zero_stage=1"}};
  for (const std::vector<std::string>& layout : layouts) {
    const ScenarioLaunch made = run.launch(layout);
    for (const std::string launcher : {"nemo", "torchtitan", "nanotron", "deepspeed"}) {
      if (launcher == "nanotron" && made.launch.zero() > 1) continue;
      const auto emitted = emitted_launch(launcher, made);
      REQUIRE_MESSAGE(emitted, (emitted ? "" : to_text(emitted.problems())));
      CAPTURE(launcher);
      CAPTURE(emitted->text);
      const auto again = run.again(launcher, emitted->text);
      REQUIRE_MESSAGE(again, (again ? "" : to_text(again.problems())));
      if (launcher == "deepspeed" && made.launch.recompute == "layers") {
        CHECK(again->launch.recompute == "layers");
      }
      check_same(again->launch, made.launch);
      if (launcher == "torchtitan") {
        CHECK(again->launch.sharing == in_torchtitan(made.launch));
      } else {
        CHECK(again->launch.sharing == made.launch.sharing);
      }
      CHECK(again->not_modelled.empty());
      if (launcher != "deepspeed") {
        CHECK(again->launch.tokens == made.launch.tokens);
        CHECK(again->launch.sequence_parallel == made.launch.sequence_parallel);
      }
    }
  }
}

TEST_CASE("chunks and stages of any size go where they can be said") {
  const Run run;
  const ScenarioLaunch made =
      run.launch({"plan.stages=8", "schedule.name=interleaved-1f1b", "schedule.chunks=2",
                  "plan.partition=balanced", "training.zero_stage=1"});
  REQUIRE(made.launch.chunks == 2);
  for (const std::string launcher : {"nemo", "torchtitan"}) {
    const auto emitted = emitted_launch(launcher, made);
    REQUIRE(emitted);
    CAPTURE(emitted->text);
    const auto again = run.again(launcher, emitted->text);
    REQUIRE_MESSAGE(again, (again ? "" : to_text(again.problems())));
    CHECK(again->launch.chunks == 2);
    CHECK(again->launch.schedule == "interleaved-1f1b");
  }
  for (const std::string launcher : {"nanotron", "deepspeed"}) {
    const auto refused = emitted_launch(launcher, made);
    REQUIRE_FALSE(refused);
    CHECK(refused.problems().front().message.find("has no schedule 'interleaved-1f1b'") !=
          std::string::npos);
  }
}

TEST_CASE("stages that torchtitan would not cut are listed module by module") {
  const Run run;
  const ScenarioLaunch made =
      run.launch({"plan.stages=4", "plan.partition=Et*5|t*9|t*9|t*9L", "training.zero_stage=1"});
  const auto emitted = emitted_launch("torchtitan", made);
  REQUIRE(emitted);
  CHECK(emitted->text.find("[\"tok_embeddings\", \"layers.0\"") != std::string::npos);
  CHECK(emitted->text.find("\"layers.31\", \"norm\", \"output\"]") != std::string::npos);
  const auto again = run.again("torchtitan", emitted->text);
  REQUIRE(again);
  CHECK(again->not_modelled.empty());
  CHECK(again->launch.layout == "Ettttt|ttttttttt|ttttttttt|tttttttttL");
}

TEST_CASE("what a launcher cannot do is told") {
  const Run run;
  const auto all_notes = [&](const std::string& launcher, const std::vector<std::string>& layout) {
    const auto emitted = emitted_launch(launcher, run.launch(layout));
    REQUIRE_MESSAGE(emitted, (emitted ? "" : to_text(emitted.problems())));
    std::string text = emitted->text;
    for (const std::string& note : emitted->notes) text += note + '\n';
    return text;
  };
  const auto says = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(says(all_notes("nanotron", {"training.zero_stage=3"}), "and no more"));
  CHECK(says(all_notes("nanotron", {"schedule.recompute=selective"}), "whole blocks or nothing"));
  CHECK(says(all_notes("deepspeed", {}), "samples have 4096 tokens"));
  CHECK(says(all_notes("deepspeed", {"schedule.recompute=selective"}), "no key does"));
  const std::string sharded_state = "training.zero_stage=1";
  CHECK(says(all_notes("torchtitan", {"model.tensor_parallel=2", sharded_state}),
             "always sequence parallel"));
  CHECK(says(all_notes("torchtitan", {"model.hidden_dropout=0.1", sharded_state}), "dropout"));
  CHECK(says(all_notes("torchtitan", {"schedule.recompute=selective", sharded_state}),
             "every second product"));
  CHECK(says(all_notes("deepspeed", {"schedule.recompute=layers"}), "switches nothing on"));
  CHECK(says(all_notes("nemo", {"schedule.recompute=none"}), "recompute_granularity: null"));
  const auto copies = emitted_launch("torchtitan", run.launch({"model.tensor_parallel=2"}));
  REQUIRE_FALSE(copies);
  CHECK(says(copies.problems().front().message, "share nothing"));
  const auto sharded =
      emitted_launch("deepspeed", run.launch({"plan.stages=4", "training.zero_stage=2"}));
  REQUIRE_FALSE(sharded);
  CHECK(says(sharded.problems().front().message, "share the optimizer's state, and no gradients"));
  const auto zero_bubble =
      emitted_launch("nemo", run.launch({"plan.stages=4", "schedule.name=zb-h1"}));
  REQUIRE_FALSE(zero_bubble);
  CHECK(says(zero_bubble.problems().front().message, "NeMo has no schedule 'zb-h1'"));
}

}  // namespace
}  // namespace plumbline::test
