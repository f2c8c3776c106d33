// Groups of devices that do not divide a model are refused.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "models/import/transformer_profile.h"
#include "tests/support/transformers.h"

namespace plumbline {
namespace {

using test::kGpt2;
using test::kLlama;
using test::kQwenMoe;
using test::profile_of;
using test::shape_of;
using test::tokens;

TEST_CASE("groups whose devices cannot share evenly are refused") {
  const auto problem = [](const std::string& config, const TransformerOptions& options) {
    const auto profile = transformer_profile("m", shape_of(config), options);
    REQUIRE_FALSE(profile);
    return profile.problems().front().message;
  };
  TransformerOptions options = tokens(60);
  options.context_parallel = 4;
  CHECK(problem(kLlama, options) ==
        "--context-parallel is 4, and 8 parts do not divide the 60 tokens of a sample");
  options.sequence = 56;
  options.tensor_parallel = 4;
  options.sequence_parallel = true;
  CHECK(problem(kQwenMoe, options) ==
        "--tensor-parallel is 4, which does not divide the 2 heads of keys and values");
  options.context_parallel = 28;
  options.tensor_parallel = 4;
  CHECK(problem(kGpt2, options) ==
        "--tensor-parallel is 4, which does not divide the 2 tokens of a sample on each device");

  options = tokens(60);
  options.context_exchange = ContextExchange::heads;
  options.context_parallel = 3;
  CHECK(problem(kLlama, options) ==
        "--context-parallel is 3, which does not divide the 4 attention heads");
  options.context_parallel = 8;
  CHECK(problem(kLlama, options) ==
        "--context-parallel is 8, which does not divide the 60 tokens of a sample");
  options = tokens(64);
  options.context_exchange = ContextExchange::heads;
  options.context_parallel = 4;
  options.tensor_parallel = 2;
  CHECK(problem(kLlama, options) ==
        "--context-parallel is 4, which does not divide the 2 attention heads of a tensor-parallel "
        "device");
  const std::string many = R"({"model_type": "llama", "hidden_size": 96, "intermediate_size": 128,
      "num_hidden_layers": 2, "num_attention_heads": 12, "num_key_value_heads": 6, "vocab_size": 9})";
  options.tensor_parallel = 1;
  CHECK(problem(many, options) ==
        "--context-parallel is 4, which does not divide the 6 heads of keys and values, nor they "
        "it");

  options = tokens(64);
  options.expert_parallel = 2;
  CHECK(problem(kLlama, options) == "--expert-parallel is 2, and the model has no experts");
  options.expert_parallel = 3;
  CHECK(problem(kQwenMoe, options) ==
        "--expert-parallel is 3, which does not divide the 8 experts");
  options.expert_parallel = 4;
  options.tensor_parallel = 2;
  CHECK(problem(kQwenMoe, options) ==
        "--expert-parallel with --tensor-parallel needs --sequence-parallel");
  options.sequence_parallel = true;
  options.context_parallel = 4;
  CHECK(problem(kQwenMoe, options) ==
        "--expert-parallel is 4, no multiple of the 8 devices of a sample (--tensor-parallel 2 x "
        "--context-parallel 4)");

  options.expert_tensor_parallel = 3;
  CHECK(problem(kQwenMoe, options) ==
        "--expert-parallel is 4 x --expert-tensor-parallel 3, no multiple of the 8 devices of a "
        "sample (--tensor-parallel 2 x --context-parallel 4)");
  options.context_parallel = 2;
  options.expert_tensor_parallel = 5;
  CHECK(problem(kQwenMoe, options) ==
        "--expert-tensor-parallel is 5, which does not divide the 24 columns of an expert");
  options.expert_tensor_parallel = 6;
  options.devices_per_server = 4;
  CHECK(problem(kQwenMoe, options) ==
        "--devices-per-server is 4, which the group that divides an expert of 6 does not fill");
  options.expert_parallel = 1;
  CHECK(problem(kQwenMoe, options) == "--expert-tensor-parallel is 6 without --expert-parallel");
  options.expert_tensor_parallel = 1;
  options.context_parallel = 4;

  options.devices_per_server = 3;
  CHECK(problem(kQwenMoe, options) ==
        "--devices-per-server is 3, which the tensor-parallel group of 2 does not fill");
  options.devices_per_server = 6;
  CHECK(problem(kQwenMoe, options) ==
        "--devices-per-server is 6, which the group of 8 does not fill");
  // Three devices of a sample: some would have it in two servers.
  options = tokens(48);
  options.context_parallel = 3;
  options.expert_parallel = 24;
  options.devices_per_server = 8;
  std::string experts = kQwenMoe;
  experts.replace(experts.find("\"num_experts\": 8"), 16, "\"num_experts\": 24");
  CHECK(problem(experts, options) ==
        "--devices-per-server is 8, which the group for a sample of 3 does not fill");
  options.devices_per_server = 6;
  CHECK(profile_of(experts, options).model.profile.group.devices == 24);
}

TEST_CASE("what no block has need not be divided") {
  TransformerOptions options = tokens(64);
  options.tensor_parallel = 2;
  std::string odd = kQwenMoe;
  odd.replace(odd.find("96"), 2, "97");
  CHECK_FALSE(transformer_profile("test", shape_of(odd), options));  // block 1 is dense
  odd.replace(odd.find("[1]"), 3, "[]");
  CHECK(transformer_profile("test", shape_of(odd), options));
}

}  // namespace
}  // namespace plumbline
