// nanotron's and DeepSpeed's configurations as launches.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/json_tree.h"
#include "base/yaml.h"
#include "sim/launch/deepspeed_reader.h"
#include "sim/launch/launch_scenario.h"
#include "sim/launch/nanotron_reader.h"
#include "sim/scenario/scenario.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

const std::string kNanotron =
    "logging: {log_level: info}\n"
    "model:\n"
    "  ddp_bucket_cap_mb: 25\n"
    "  dtype: bfloat16\n"
    "  make_vocab_size_divisible_by: 1\n"
    "  model_config: {is_llama_config: true, hidden_size: 1024, intermediate_size: 2816,\n"
    "    num_attention_heads: 16, num_hidden_layers: 8, num_key_value_heads: 4,\n"
    "    vocab_size: 32001, tie_word_embeddings: true, max_position_embeddings: 4096}\n"
    "optimizer: {accumulate_grad_in_fp32: true, zero_stage: 1, weight_decay: 0.1}\n"
    "parallelism: {dp: 2, pp: 2, tp: 2, pp_engine: 1f1b, tp_mode: REDUCE_SCATTER,\n"
    "  recompute_layer: true, something_new: 3}\n"
    "tokens: {batch_accumulation_per_replica: 4, micro_batch_size: 3, sequence_length: 2048,\n"
    "  train_steps: 100}\n";

Result<ReadLaunch> nanotron(const std::string& text, const LaunchGiven& given = {}) {
  Diagnostics problems;
  LaunchArguments arguments(problems);
  const auto root = parse_yaml(text_source("nanotron.yaml", text));
  REQUIRE(root);
  arguments.add_tree(*root, /*by_path=*/true);
  return read_nanotron(std::move(arguments), problems, given);
}

Result<ReadLaunch> deepspeed(const std::string& text, const LaunchGiven& given) {
  Diagnostics problems;
  LaunchArguments arguments(problems);
  const auto root = parse_json(text_source("ds.json", text));
  REQUIRE(root);
  arguments.add_tree(*root, /*by_path=*/true);
  return read_deepspeed(std::move(arguments), problems, given, 2048);
}

TEST_CASE("nanotron's configuration is read") {
  const auto found = nanotron(kNanotron);
  REQUIRE_MESSAGE(found, (found ? "" : to_text(found.problems())));
  const Launch& launch = found->launch;
  CHECK(launch.gpus == 8);
  CHECK(launch.tensor == 2);
  CHECK(launch.pipeline == 2);
  CHECK(launch.sequence_parallel);
  CHECK(launch.schedule == "1f1b");
  CHECK(launch.balanced);
  CHECK(launch.micro_batch_size == 3);
  CHECK(launch.mini_batch_size == 24);
  CHECK(launch.tokens == 24 * 2048 * 100);
  CHECK(launch.zero() == 1);
  CHECK(launch.gradients == 2);
  CHECK(launch.bucket == Bytes{25 << 20});
  CHECK(launch.recompute == "layers");
  CHECK(launch.shape.find("\"vocab_size\": 32002") != std::string::npos);  // padded for two
  CHECK(found->not_modelled == std::vector<std::string>{"parallelism.something_new"});
  CHECK(found->no_effect ==
        std::vector<std::string>{"logging.log_level", "optimizer.weight_decay"});
  const auto refused = nanotron(kNanotron, {.config = "", .gpus = 16});
  REQUIRE_FALSE(refused);
  CHECK(refused.problems().front().message ==
        "dp, tp, pp and context_parallel_size make 8 GPUs, but --gpus is 16");
}

TEST_CASE("nanotron's scenario can be read") {
  const TemporaryFolder folder;
  const auto found = nanotron(kNanotron);
  REQUIRE(found);
  const std::string config = folder.file("model.config.json", found->launch.shape);
  const auto scenario =
      parse_scenario(text_source("run.yaml", scenario_text(*found, {.name = "run",
                                                                    .from = "From a test.",
                                                                    .config = config,
                                                                    .device = "h100-sxm",
                                                                    .network = "50 GB/s"})),
                     {});
  CHECK_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
}

TEST_CASE("DeepSpeed's configuration is read") {
  const auto found = deepspeed(
      R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2,
          "gradient_accumulation_steps": 4, "bf16": {"enabled": true},
          "zero_optimization": {"stage": 3, "overlap_comm": true, "reduce_bucket_size": 1e8,
                                "offload_optimizer": {"device": "cpu"}},
          "gradient_clipping": 1.0, "steps_per_print": 10})",
      {.config = "config.json", .gpus = {}});
  REQUIRE_MESSAGE(found, (found ? "" : to_text(found.problems())));
  const Launch& launch = found->launch;
  CHECK(launch.gpus == 8);
  CHECK(launch.micro_batch_size == 2);
  CHECK(launch.mini_batch_size == 64);
  CHECK(launch.zero() == 3);
  CHECK(launch.bucket == Bytes{200'000'000});
  CHECK(launch.gradients == 1);
  CHECK(launch.sequence == 2048);
  CHECK(found->not_modelled ==
        std::vector<std::string>{"zero_optimization.offload_optimizer.device"});
  CHECK(found->no_effect == std::vector<std::string>{"gradient_clipping", "steps_per_print"});
}

TEST_CASE("MiCS of DeepSpeed is copies that share in groups") {
  const auto read = [](int size, const std::string& more = "", int stage = 3) {
    const auto found = deepspeed(
        fmt::format(R"({{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1,{}
                      "zero_optimization": {{"stage": {}, "mics_shard_size": {}}}}})",
                    more, stage, size),
        {.config = "config.json", .gpus = 16});
    REQUIRE_MESSAGE(found, (found ? "" : to_text(found.problems())));
    return *found;
  };
  CHECK(read(8).launch.sharing.degree == 8);
  CHECK(read(8).launch.sharing.reduction == Reduction::in_groups_each_backward);
  CHECK(read(8).not_modelled.empty());
  CHECK(read(16).launch.sharing == read(-1).launch.sharing);
  // The GPUs of a sequence share, too: a copy has four of them.
  const std::string ulysses = "\"sequence_parallel_size\": 4,";
  CHECK(read(8, ulysses).launch.sharing.degree == 2);
  CHECK(read(16, ulysses).launch.sharing.degree == 0);
  const std::vector<std::string> left = {"zero_optimization.mics_shard_size"};
  CHECK(read(2, ulysses).not_modelled == left);
  CHECK(read(8, "", 2).not_modelled == left);
}

TEST_CASE("what DeepSpeed leaves to the trainer is asked for") {
  const auto message = [](const std::string& text, std::optional<std::int64_t> gpus) {
    const auto found = deepspeed(text, {.config = "config.json", .gpus = gpus});
    REQUIRE_FALSE(found);
    return found.problems().front().message;
  };
  CHECK(message(R"({"train_micro_batch_size_per_gpu": "auto"})", 8) ==
        "train_micro_batch_size_per_gpu is 'auto': the trainer decides it");
  CHECK(message(R"({"train_micro_batch_size_per_gpu": 2})", std::nullopt) ==
        "the number of GPUs is not given");
  CHECK(message(R"({"train_batch_size": 48, "train_micro_batch_size_per_gpu": 2,
                    "gradient_accumulation_steps": 4})",
                8) ==
        "train_batch_size is 48, but micro-batches of 2 on 8 copies make 64 in 4 steps");
}

}  // namespace
}  // namespace plumbline::test
