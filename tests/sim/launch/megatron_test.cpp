// Arguments of Megatron-LM as launches, and launches as scenarios that can be predicted.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "base/yaml.h"
#include "sim/launch/launch_of.h"
#include "sim/launch/launch_scenario.h"
#include "sim/launch/megatron_reader.h"
#include "sim/launch/megatron_writer.h"
#include "sim/planning/planning.h"
#include "sim/planning/predict.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

const std::string kModel =
    "--num-layers 8 --hidden-size 1024 --num-attention-heads 16 --ffn-hidden-size 2816 "
    "--group-query-attention --num-query-groups 4 --swiglu --normalization RMSNorm "
    "--position-embedding-type rope --disable-bias-linear --untie-embeddings-and-output-weights "
    "--vocab-size 32000 --seq-length 2048 --max-position-embeddings 4096 --attention-dropout 0 "
    "--hidden-dropout 0 --bf16 ";

Result<ReadLaunch> read(const std::string& text, const LaunchGiven& given = {}) {
  Diagnostics problems;
  LaunchArguments arguments(problems);
  arguments.add_command(text_source("run.sh", text));
  return read_megatron(std::move(arguments), problems, given);
}

Launch launch_in(const std::string& text) {
  const auto found = read(kModel + text);
  REQUIRE_MESSAGE(found, (found ? "" : to_text(found.problems())));
  return found->launch;
}

std::string refusal(const std::string& text) {
  const auto found = read(text);
  REQUIRE_FALSE(found);
  return found.problems().front().message;
}

TEST_CASE("parallelism, batches and stages are read") {
  const Launch launch = launch_in(
      "--nproc_per_node 8 --nnodes 4 --tensor-model-parallel-size 2 --sequence-parallel "
      "--pipeline-model-parallel-size 4 --context-parallel-size 2 --cp-comm-type a2a "
      "--num-layers-per-virtual-pipeline-stage 1 --micro-batch-size 2 --global-batch-size 64 "
      "--train-samples 1000");
  CHECK(launch.gpus == 32);
  CHECK(launch.gpus_per_server == 8);
  CHECK(launch.tensor == 2);
  CHECK(launch.sequence_parallel);
  CHECK(launch.context == 2);
  CHECK(launch.context_by_heads);
  CHECK(launch.pipeline == 4);
  CHECK(launch.chunks == 2);
  CHECK(launch.schedule == "interleaved-1f1b");
  CHECK(launch.micro_batch_size == 2);
  CHECK(launch.mini_batch_size == 64);
  CHECK(launch.tokens == 2'048'000);
  CHECK(launch.dtype == "bf16");
  CHECK(launch.gradients == 2);  // Megatron-LM accumulates in fp32 beside bf16
}

TEST_CASE("sharding, recomputation and precision are read") {
  const Launch launch = launch_in(
      "--nproc-per-node 8 --global-batch-size 16 --use-distributed-optimizer "
      "--overlap-grad-reduce --overlap-param-gather --recompute-granularity selective "
      "--recompute-modules core_attn layernorm --fp8-format hybrid --grad-reduce-in-bf16");
  CHECK(launch.zero() == 1);
  CHECK(launch.gathers_with_forward);
  CHECK(launch.bucket == Bytes{80'000'000});
  CHECK(launch.recompute == "selective");
  CHECK(launch.recompute_modules == std::vector<std::string>{"core_attn", "layernorm"});
  CHECK(launch.fp8);
  CHECK(launch.gradients == 1);
  const Launch full = launch_in(
      "--nproc-per-node 8 --global-batch-size 16 --recompute-granularity full "
      "--recompute-method block --recompute-num-layers 3 --use-megatron-fsdp "
      "--data-parallel-sharding-strategy optim_grads_params --use-precision-aware-optimizer "
      "--exp-avg-dtype bf16 --exp-avg-sq-dtype bf16");
  CHECK(full.recompute == "layers");
  CHECK(full.recompute_layers == 3);
  CHECK(full.zero() == 3);
  CHECK(full.optimizer_state == 4);  // 4 + 2 + 2 bytes beside 2
  const Launch instances = launch_in(
      "--nproc-per-node 8 --global-batch-size 16 --use-distributed-optimizer "
      "--num-distributed-optimizer-instances 2");
  CHECK(instances.sharing.degree == 4);
  const Launch stays = launch_in(
      "--nproc-per-node 8 --global-batch-size 16 --use-torch-fsdp2 "
      "--torch-fsdp2-no-reshard-after-forward");
  CHECK(stays.zero() == 3);
  CHECK_FALSE(stays.sharing.frees_after_forward);
  CHECK(stays.sharing.frees_after_backward);
}

TEST_CASE("uneven stages become a layout") {
  const auto layout = [](const std::string& text) {
    return launch_in("--nproc-per-node 4 --global-batch-size 8 --pipeline-model-parallel-size 4 " +
                     text)
        .layout;
  };
  CHECK(layout("").empty());
  CHECK(layout("--decoder-first-pipeline-num-layers 1 --decoder-last-pipeline-num-layers 3") ==
        "Et|t*2|t*2|t*3L");
  CHECK(layout("--pipeline-model-parallel-layout 'Et|(t*2|)*2t*3,L'") == "Et|(t*2|)*2t*3,L");
  const auto counted =
      read("--num-layers 10 " + kModel.substr(kModel.find("--hidden")) +
           "--nproc-per-node 4 --pipeline-model-parallel-size 4 --global-batch-size 8 "
           "--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split");
  REQUIRE(counted);
  CHECK(counted->launch.layout == "Et*2|t*3|t*3|t*2L");
}

TEST_CASE("what is not modelled is listed, and what has no effect beside it") {
  const auto found = read(kModel +
                          "--nproc-per-node 8 --global-batch-size 8 --lr 1e-4 --use-nccl-ub "
                          "--something-new 3 --recompute-granularity selective "
                          "--recompute-modules core_attn elsewhere");
  REQUIRE(found);
  CHECK(found->not_modelled == std::vector<std::string>{"--recompute-modules elsewhere",
                                                        "--use-nccl-ub", "--something-new"});
  CHECK(found->no_effect == std::vector<std::string>{"--lr"});
}

TEST_CASE("YAML of NeMo says the same as the arguments") {
  Diagnostics problems;
  LaunchArguments arguments(problems);
  const auto tree = parse_yaml(text_source("nemo.yaml",
                                           "trainer: {devices: 8, num_nodes: 2, precision: bf16}\n"
                                           "model:\n"
                                           "  micro_batch_size: 1\n"
                                           "  global_batch_size: 32\n"
                                           "  tensor_model_parallel_size: 4\n"
                                           "  pipeline_model_parallel_size: 2\n"
                                           "  virtual_pipeline_model_parallel_size: 2\n"
                                           "  sequence_parallel: true\n"
                                           "  encoder_seq_length: 2048\n"
                                           "  num_layers: 8\n"
                                           "  hidden_size: 1024\n"
                                           "  ffn_hidden_size: 2816\n"
                                           "  num_attention_heads: 16\n"
                                           "  num_query_groups: 4\n"
                                           "  activation: fast-swiglu\n"
                                           "  normalization: rmsnorm\n"
                                           "  position_embedding_type: rope\n"
                                           "  bias: false\n"
                                           "  share_embeddings_and_output_weights: false\n"
                                           "  vocab_size: 32000\n"
                                           "  activations_checkpoint_granularity: selective\n"
                                           "  optim: {name: distributed_fused_adam, lr: 1e-4}\n"));
  REQUIRE(tree);
  arguments.add_tree(*tree, false);
  const auto found = read_megatron(std::move(arguments), problems, {});
  REQUIRE_MESSAGE(found, (found ? "" : to_text(found.problems())));
  const Launch& launch = found->launch;
  CHECK(launch.gpus == 16);
  CHECK(launch.tensor == 4);
  CHECK(launch.sequence_parallel);
  CHECK(launch.chunks == 2);
  CHECK(launch.zero() == 1);
  CHECK(launch.dtype == "bf16");
  CHECK(launch.recompute_modules == std::vector<std::string>{"core_attn"});
  CHECK(launch.shape.find("\"model_type\": \"llama\"") != std::string::npos);
  CHECK(launch.shape.find("\"num_key_value_heads\": 4") != std::string::npos);
  CHECK(launch.shape.find("\"attention_bias\": false") != std::string::npos);
}

TEST_CASE("blocks choose the family of the config.json") {
  const auto family = [](const std::string& text) {
    const std::string sizes =
        "--num-layers 8 --hidden-size 1024 --num-attention-heads 16 --vocab-size 32000 "
        "--seq-length 2048 --nproc-per-node 8 --global-batch-size 8 --bf16 ";
    const auto found = read(sizes + text);
    REQUIRE_MESSAGE(found, (found ? "" : to_text(found.problems())));
    const std::string& shape = found->launch.shape;
    const std::size_t at = shape.find("\"model_type\": \"") + 15;
    return shape.substr(at, shape.find('"', at) - at);
  };
  const std::string gated = "--swiglu --normalization RMSNorm --position-embedding-type rope ";
  CHECK(family("") == "gpt2");
  CHECK(family("--position-embedding-type rope") == "starcoder2");
  CHECK(family("--squared-relu --position-embedding-type rope") == "nemotron");
  CHECK(family(gated) == "llama");
  CHECK(family(gated + "--disable-bias-linear --add-qkv-bias") == "qwen2");
  CHECK(family(gated + "--disable-bias-linear --qk-layernorm") == "qwen3");
  CHECK(family(gated + "--num-experts 8") == "mixtral");
  CHECK(family(gated + "--num-experts 8 --qk-layernorm") == "qwen3_moe");
  CHECK(family(gated + "--num-experts 8 --moe-ffn-hidden-size 512 "
                       "--moe-shared-expert-intermediate-size 512") == "glm4_moe");
  CHECK(family(gated + "--multi-latent-attention --num-experts 8 --moe-ffn-hidden-size 512 "
                       "--moe-layer-freq ([0]*2+[1]*6)") == "deepseek_v3");
}

TEST_CASE("what cannot be read is refused with what is needed") {
  CHECK(refusal("--nproc-per-node 8 --seq-length 2048 --bf16") == "--num-layers is missing");
  CHECK(refusal(kModel) == "the number of GPUs is not given");
  CHECK(refusal(kModel + "--nproc-per-node 8 --tensor-model-parallel-size 3") ==
        "8 GPUs are not divided by 3 (tensor 3 x context 1 x pipeline 1, experts 1)");
  CHECK(refusal(kModel + "--nproc-per-node 8 --global-batch-size 12 --micro-batch-size 2") ==
        "--global-batch-size is 12, which micro-batches of 2 on 8 copies do not divide");
  CHECK(refusal(kModel + "--nproc-per-node 8 --window-size 128,0") ==
        "--window-size: such blocks are not made of arguments");
}

TEST_CASE("the scenario of a launch can be predicted") {
  const TemporaryFolder folder;
  for (const std::string more :
       {"--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2",
        "--pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 2 "
        "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather",
        "--num-experts 8 --moe-ffn-hidden-size 512 --expert-model-parallel-size 4 "
        "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
        "--pipeline-model-parallel-size 2 --decoder-first-pipeline-num-layers 3 --qk-layernorm "
        "--recompute-granularity selective --recompute-modules core_attn layernorm",
        "--pipeline-model-parallel-size 2 --context-parallel-size 2 --use-megatron-fsdp "
        "--data-parallel-sharding-strategy optim_grads_params --grad-reduce-in-bf16 "
        "--train-samples 1000000",
        "--multi-latent-attention --kv-lora-rank 128 --qk-head-dim 64 --qk-pos-emb-head-dim 32 "
        "--v-head-dim 64 --num-experts 8 --moe-ffn-hidden-size 512 --moe-layer-freq "
        "([0]*1+[1]*7) --moe-shared-expert-intermediate-size 512"}) {
    CAPTURE(more);
    const auto found = read(kModel + "--nproc-per-node 8 --global-batch-size 32 " + more);
    REQUIRE_MESSAGE(found, (found ? "" : to_text(found.problems())));
    const std::string config = folder.file("model.config.json", found->launch.shape);
    const std::string text =
        scenario_text(*found, {.name = "run", .from = "From a test.", .config = config});
    auto scenario = parse_scenario(text_source("run.yaml", text), {});
    REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems()) + text));
    const auto resolved = resolve_plan(*std::move(scenario));
    REQUIRE_MESSAGE(resolved, (resolved ? "" : to_text(resolved.problems())));
    const auto outcome = predict(*resolved, Evaluation::fastest);
    REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
    CHECK(outcome->samples_per_iteration() == 32);
    CHECK(outcome->devices_in_all() == 8);

    // Out again, and in again: the same launch.
    const auto out = launch_of(*resolved, outcome->setup);
    REQUIRE_MESSAGE(out, (out ? "" : to_text(out.problems())));
    const auto command = megatron_text(*out);
    REQUIRE_MESSAGE(command, (command ? "" : to_text(command.problems())));
    CAPTURE(*command);
    const auto again = read(*command);
    REQUIRE_MESSAGE(again, (again ? "" : to_text(again.problems())));
    CHECK(again->not_modelled.empty());
    CHECK(again->launch.shape == found->launch.shape);
    CHECK(scenario_text(*again, {.name = "run", .from = "From a test.", .config = config}) ==
          scenario_text({found->launch, {}, again->no_effect, again->notes},
                        {.name = "run", .from = "From a test.", .config = config}));
  }
}

}  // namespace
}  // namespace plumbline::test
