// torchtitan's configuration as a launch.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <string>

#include "base/toml_tree.h"
#include "sim/launch/torchtitan_names.h"
#include "sim/launch/torchtitan_reader.h"
#include "tests/support/text_source.h"
#include "tests/support/transformers.h"

namespace plumbline::test {
namespace {

Result<ReadLaunch> read(const std::string& text, std::optional<std::int64_t> gpus = 64) {
  Diagnostics problems;
  LaunchArguments arguments(problems);
  const auto root = parse_toml(text_source("titan.toml", text));
  REQUIRE_MESSAGE(root, (root ? "" : to_text(root.problems())));
  arguments.add_tree(*root, /*by_path=*/true);
  return read_torchtitan(std::move(arguments), problems, {.config = "", .gpus = gpus});
}

std::string refusal(const std::string& text, std::optional<std::int64_t> gpus = 64) {
  const auto found = read(text, gpus);
  REQUIRE_FALSE(found);
  return found.problems().front().message;
}

const std::string kModel = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n";

TEST_CASE("a configuration without a pipeline is read, with its defaults") {
  const auto found = read(kModel +
                          "[training]\nseq_len = 8192\nlocal_batch_size = 2\nsteps = 1_000\n"
                          "[optimizer]\nname = \"AdamW\"\nlr = 3e-4\n"
                          "[parallelism]\ntensor_parallel_degree = 8\n"
                          "data_parallel_shard_degree = -1\n"
                          "enable_async_tensor_parallel = true\n"
                          "[compile]\nenable = true\ncomponents = [\"model\", \"loss\"]\n"
                          "[activation_checkpoint]\nmode = \"full\"\n");
  REQUIRE_MESSAGE(found, (found ? "" : to_text(found.problems())));
  const Launch& launch = found->launch;
  CHECK(launch.gpus == 64);
  CHECK(launch.tensor == 8);
  CHECK(launch.sequence_parallel);
  CHECK(launch.pipeline == 1);
  CHECK(launch.zero() == 3);
  CHECK(launch.micro_batch_size == 2);
  CHECK(launch.mini_batch_size == 16);  // of eight copies
  CHECK(launch.sequence == 8192);
  CHECK(launch.stack == "torch-compile");
  CHECK(launch.tokens == 16 * 8192 * 1000);
  CHECK(launch.recompute == "layers");
  CHECK_FALSE(launch.recompute_layers);
  CHECK(launch.gradients == 2);
  CHECK(launch.optimizer_state == 5);
  CHECK(found->not_modelled ==
        std::vector<std::string>{"parallelism.enable_async_tensor_parallel"});
  CHECK(found->no_effect == std::vector<std::string>{"optimizer.lr", "compile.components"});
}

TEST_CASE("a pipeline is cut as torchtitan cuts it") {
  const auto found = read(kModel +
                          "[training]\nlocal_batch_size = 16\n"
                          "[parallelism]\npipeline_parallel_degree = 4\n"
                          "pipeline_parallel_schedule = \"Interleaved1F1B\"\n"
                          "pipeline_parallel_microbatch_size = 2\n"
                          "[activation_checkpoint]\nmode = \"selective\"\n"
                          "selective_ac_option = \"op\"\n");
  REQUIRE_MESSAGE(found, (found ? "" : to_text(found.problems())));
  const Launch& launch = found->launch;
  CHECK(launch.schedule == "interleaved-1f1b");
  CHECK(launch.chunks == 2);
  CHECK(launch.layout == "Et*4|t*5|t*4|t*4|t*4|t*4|t*4|t*3L");
  CHECK(launch.micro_batch_size == 2);
  CHECK(launch.mini_batch_size == 256);
  // Parameters stay, and gradients are reduced at the end.
  CHECK(launch.zero() == 3);
  CHECK_FALSE(launch.sharing.gathers_passes());
  CHECK(launch.sharing.reduction == Reduction::behind_last_backward);
  CHECK(launch.recompute == "selective");
  const auto thin = read(kModel +
                         "[parallelism]\npipeline_parallel_degree = 4\n"
                         "pipeline_parallel_schedule = \"Interleaved1F1B\"\n"
                         "pipeline_parallel_layers_per_stage = 3\n");
  REQUIRE(thin);
  CHECK(thin->launch.chunks == 3);  // 34 layers, as the ends count
  // Every second block of each stage, where nothing is said.
  CHECK(thin->launch.recompute == "layers");
  CHECK(thin->launch.recompute_layers == 1);
}

TEST_CASE("weights are freed as torchtitan and a pipeline free them, in groups of copies") {
  const auto sharing = [](const std::string& parallelism) {
    const auto found =
        read(kModel + "[training]\nlocal_batch_size = 16\n[parallelism]\n" + parallelism);
    REQUIRE_MESSAGE(found, (found ? "" : to_text(found.problems())));
    CHECK(found->not_modelled.empty());
    return found->launch.sharing;
  };
  const std::string pipeline = "pipeline_parallel_degree = 4\n";
  const std::string always = "fsdp_reshard_after_forward = \"always\"\n";
  const std::string never = "fsdp_reshard_after_forward = \"never\"\n";
  CHECK(sharing("").holds_share_of_weights());
  CHECK(sharing(always) == sharing(""));
  CHECK_FALSE(sharing(never).frees_after_forward);
  CHECK(sharing(never).frees_after_backward);
  CHECK(sharing(never).reduces_each_backward());
  CHECK(sharing(pipeline) == sharing(pipeline + never));
  CHECK(sharing(pipeline + always).frees_after_forward);
  CHECK_FALSE(sharing(pipeline + always).frees_after_backward);
  // Where backwards are split, weights that forwards free are not simulated.
  CHECK_FALSE(
      sharing(pipeline + always + "pipeline_parallel_schedule = \"InterleavedZeroBubble\"\n")
          .gathers_passes());
  CHECK(sharing("data_parallel_replicate_degree = 4\n").degree == 16);
  CHECK(sharing(pipeline + "data_parallel_replicate_degree = 2\n").degree == 8);
  CHECK(sharing("data_parallel_shard_degree = 1\ndata_parallel_replicate_degree = 64\n") ==
        Sharing{});
}

TEST_CASE("sharding goes over context parallelism, and without it nothing is in bf16") {
  const auto context = read(kModel +
                                "[parallelism]\ndata_parallel_shard_degree = 1\n"
                                "context_parallel_degree = 8\n",
                            8);
  REQUIRE(context);
  CHECK(context->launch.zero() == 3);
  CHECK(context->launch.dtype == "bf16");
  const auto tensor = read(kModel +
                               "[parallelism]\ndata_parallel_shard_degree = 1\n"
                               "tensor_parallel_degree = 8\n",
                           8);
  REQUIRE(tensor);
  CHECK(tensor->launch.zero() == 0);
  CHECK(tensor->launch.dtype == "fp32");
  CHECK(tensor->launch.gradients == 1);
  const auto copies = read(kModel +
                               "[parallelism]\ndata_parallel_shard_degree = 1\n"
                               "data_parallel_replicate_degree = 8\n",
                           8);
  REQUIRE(copies);
  CHECK(copies->launch.zero() == 0);
  CHECK(copies->launch.dtype == "bf16");
  CHECK(copies->launch.bucket == Bytes{100 << 20});
}

TEST_CASE("precision, and what is not modelled of it") {
  const auto found = read(
      "[model]\nname = \"llama3\"\nflavor = \"8B\"\nconverters = [\"float8\"]\n"
      "[quantize.linear.float8]\nfilter_fqns = [\"output\"]\n"
      "enable_fsdp_float8_all_gather = false\n"
      "[activation_checkpoint]\nselective_ac_option = \"0\"\n");
  REQUIRE(found);
  CHECK(found->launch.fp8);
  CHECK(found->not_modelled == std::vector<std::string>{"quantize.linear.float8.filter_fqns"});
  CHECK(found->launch.recompute == "layers");
  CHECK_FALSE(found->launch.recompute_layers);
}

TEST_CASE("layouts have all blocks, and ends that are lighter") {
  CHECK(torchtitan_layout(32, 4, 1, 1) == "Et*8|t*9|t*8|t*7L");
  CHECK(torchtitan_layout(30, 4, 1, 1) == "Et*7|t*8|t*8|t*7L");
  CHECK(torchtitan_layout(2, 2, 1, 1) == "Et|tL");
  CHECK(torchtitan_layout(4, 2, 0, 0) == "Et*2|t*2L");
  CHECK(torchtitan_layout(2, 8, 1, 1).empty());
  CHECK(torchtitan_layout(8, 4, 5, 1).empty());
}

TEST_CASE("what cannot be read is refused with what is needed") {
  CHECK(refusal("[model]\nname = \"flux\"\nflavor = \"dev\"\n") ==
        "the sizes of 'dev' of 'flux' are not known here");
  CHECK(refusal("[model]\nflavor = \"70C\"\n[training]\nsteps = 3\n") ==
        "the sizes of '70C' of 'llama3' are not known here");
  CHECK(refusal(kModel + "[activation_checkpoint]\nmode = \"fulll\"\n") ==
        "activation_checkpoint.mode is 'fulll'");
  CHECK(refusal(kModel + "[activation_checkpoint]\nselective_ac_option = \"opp\"\n") ==
        "activation_checkpoint.selective_ac_option is 'opp'");
  CHECK(refusal(kModel + "[parallelism]\ntensor_parallel_degree = 1000000000\n") ==
        "parallelism.tensor_parallel_degree is 1000000000, which is not between 1 and 10000");
  CHECK(refusal(kModel + "[parallelism]\npipeline_parallel_degree = 4\n"
                         "module_fqns_per_model_part = [[\"tok_embeddings\", \"layers.0\"], "
                         "[\"layers.1\"], [\"output\"]]\n") ==
        "3 parts are no multiple of 4 devices");
  CHECK(refusal(kModel + "[parallelism]\npipeline_parallel_degree = 2\n"
                         "module_fqns_per_model_part = [[\"tok_embeddings\", \"layers.1\"], "
                         "[\"layers.0\", \"output\"]]\n") ==
        "'layers.1' stands where layers.0 is next");
  CHECK(refusal(kModel + "[parallelism]\npipeline_parallel_degree = 4\n"
                         "pipeline_parallel_layers_per_stage = 3\n") ==
        "3 stages on each of 4 devices, but 1F1B takes one");
  CHECK(refusal(kModel, std::nullopt) == "the number of GPUs is not given");
  CHECK(refusal(kModel + "[parallelism]\ntensor_parallel_degree = 3\n") ==
        "64 GPUs are not divided by 3, which the other degrees make");
  CHECK(refusal(kModel + "[parallelism]\ndata_parallel_shard_degree = 8\n") ==
        "the degrees make 8 GPUs, but --gpus is 64");
  CHECK(refusal(kModel + "[parallelism]\npipeline_parallel_degree = 2\n"
                         "pipeline_parallel_schedule = \"Mine\"\n") ==
        "the schedule 'Mine' is not known here");
  CHECK(refusal(kModel + "[training]\nlocal_batch_size = 3\nglobal_batch_size = 100\n") ==
        "training.global_batch_size is 100, which 3 samples on each of 64 copies do not divide");
}

TEST_CASE("models have about as many parameters as their names say") {
  const auto check = [](std::string_view name, std::string_view flavor, double billions) {
    CAPTURE(flavor);
    const TorchtitanModel* model = find_torchtitan_model(name, flavor);
    REQUIRE(model);
    const std::string config = config_of(*model);
    const double parameters =
        static_cast<double>(profile_of(config, tokens(16)).totals.parameters.value());
    CHECK(parameters / 1e9 == doctest::Approx(billions).epsilon(0.005));
    CHECK(torchtitan_model_of(config) == model);
  };
  check("llama3", "8B", 8.03);
  check("llama3", "8B_flex", 8.03);
  check("llama3", "70B", 70.55);
  check("llama3", "405B", 405.85);
  check("qwen3", "0.6B", 0.596);
  check("qwen3", "1.7B", 1.72);
  check("qwen3", "4B", 4.02);
  check("qwen3", "8B", 8.19);
  check("qwen3", "14B", 14.77);
  check("qwen3", "32B", 32.76);
  check("qwen3", "30B-A3B", 30.5);
  check("qwen3", "235B-A22B", 235.1);
  check("deepseek_v3", "16B", 15.7);
  check("deepseek_v3", "236B", 235.7);
  check("deepseek_v3", "671B", 671.0);
  CHECK(find_torchtitan_model("llama3", "9B") == nullptr);
  CHECK(find_torchtitan_model("llama3", "debugmodel_varlen_attn") != nullptr);
  CHECK(find_torchtitan_model("qwen3", "debugmodel_moe") == nullptr);
  CHECK(torchtitan_model_of("{}") == nullptr);
}

TEST_CASE("TOML is a tree with places") {
  const auto root = parse_toml(
      text_source("t.toml", "b = 1\na = [1.5, \"x\"]\n[s.t]\nflag = true\nday = 1979-05-27\n"));
  REQUIRE(root);
  REQUIRE(root->entries.size() == 3);
  CHECK(root->entries[0].key == "b");  // in the order of the file
  CHECK(root->entries[1].value.items[0].text == "1.5");
  CHECK(root->entries[2].value.entries[0].value.entries[1].value.text == "1979-05-27");
  CHECK(root->entries[2].value.entries[0].value.entries[0].mark.line == 4);
  std::string deep = "a";
  for (int i = 0; i < 200; ++i) deep += ".a";
  CHECK_FALSE(parse_toml(text_source("t.toml", deep + " = 1\n")));
  const auto wrong = parse_toml(text_source("t.toml", "a = 1\nb = = 2\n"));
  REQUIRE_FALSE(wrong);
  CHECK(wrong.problems().front().mark.line == 2);
  CHECK(wrong.problems().front().message.starts_with("not valid TOML: "));
}

}  // namespace
}  // namespace plumbline::test
