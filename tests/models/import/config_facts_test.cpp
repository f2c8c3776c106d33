// Other contents of a config.json than the shape: keys that nobody reads, nulls, Python's numbers.
//
// SPDX-License-Identifier: MIT
#include "models/import/config_facts.h"

#include <doctest/doctest.h>

#include "tests/support/transformers.h"

namespace plumbline {
namespace {

using test::kDeepSeek;
using test::kGpt2;
using test::kLlama;
using test::kQwenMoe;
using test::profile_of;
using test::shape_of;
using test::tokens;

/// `config` with more keys.
std::string with(std::string config, const std::string& keys) {
  return config.insert(1, keys + ", ");
}

/// `config` with `value` for a key that it has.
std::string changed(std::string config, const std::string& key, const std::string& value) {
  const std::size_t at = config.find("\"" + key + "\": ");
  REQUIRE(at != std::string::npos);
  const std::size_t begin = at + key.size() + 4;
  return config.replace(begin, config.find_first_of(",}", begin) - begin, value);
}

std::vector<std::string> notes_of(const std::string& config,
                                  TransformerOptions options = tokens(8)) {
  options.dropout = 0;
  return config_notes(shape_of(config), options);
}

using Notes = std::vector<std::string>;

TEST_CASE("keys that nothing reads and that may change costs are told in one note") {
  CHECK(notes_of(kLlama).empty());
  CHECK(notes_of(with(kLlama, R"("num_experts": 8)")) ==
        Notes{"config.json has a key that nothing here reads and that may change costs: "
              "num_experts"});
  CHECK(notes_of(with(kLlama, R"("shared_kv": true, "conv_kernel": 4, "mlp_types": ["a"])")) ==
        Notes{"config.json has keys that nothing here reads and that may change costs: shared_kv, "
              "conv_kernel, mlp_types"});
  CHECK(notes_of(with(kLlama,
                      R"("a1": 1, "a2": 1, "a3": 1, "a4": 1, "a5": 1, "a6": 1, "a7": 1, "a8": 1,
                         "a9": 1)")) ==
        Notes{"config.json has keys that nothing here reads and that may change costs: a1, a2, a3, "
              "a4, a5, a6, a7 and 2 more"});
}

TEST_CASE("keys that change no cost, or switch nothing on, are passed over") {
  CHECK(notes_of(with(kLlama, R"("architectures": ["L"], "rope_scaling": {"factor": 8},
                                 "rope_theta": 1e6, "_name_or_path": "x", "use_cache": true,
                                 "bos_token_id": 1, "rms_norm_eps": 1e-5, "hidden_act": "silu",
                                 "transformers_version": "4.5", "torch_dtype": "bfloat16")"))
            .empty());
  CHECK(notes_of(with(kLlama, R"("num_experts": 0, "conv_kernel": null, "shared_kv": false,
                                 "types": [], "extra": {}, "rate": 0.0, "name": "")"))
            .empty());
  CHECK(notes_of(with(kDeepSeek, R"("num_key_value_heads": 128, "topk_method": "noaux_tc")"))
            .empty());
  CHECK(notes_of(with(kQwenMoe, R"("use_qk_norm": true)")).empty());
  CHECK(notes_of(with(kLlama, R"("use_qk_norm": true)")).size() == 1);
  CHECK(notes_of(with(kLlama, R"("layer_types": ["full_attention", "full_attention"])")).empty());
  CHECK(notes_of(with(kLlama, R"("layer_types": ["full_attention", "linear_attention"])")).size() ==
        1);
  CHECK(notes_of(with(kLlama, R"("_attn_implementation": "eager")")).size() == 1);
  CHECK(changes_no_cost("vocab_size") == false);
  CHECK(changes_no_cost("activation_function"));
  CHECK(changes_no_cost("use_return_dict"));
}

TEST_CASE("numbers that the file gives otherwise are told") {
  CHECK(notes_of(with(kLlama, R"("torch_dtype": "float32")")) ==
        Notes{"config.json has torch_dtype float32, and numbers are taken to be bf16: --dtype says "
              "otherwise"});
  TransformerOptions given = tokens(8);
  given.dtype_given = true;
  CHECK(notes_of(with(kLlama, R"("dtype": "float32")"), given).empty());
  CHECK(notes_of(with(kLlama, R"("quantization_config": {"quant_method": "fp8"})")) ==
        Notes{"quantization_config of config.json is not counted: all numbers are bf16 (--dtype, "
              "--fp8-linear)"});
  given.fp8_linear = true;
  CHECK(notes_of(with(kLlama, R"("quantization_config": {"quant_method": "fp8"})"), given).empty());
}

TEST_CASE("null counts as the owner of the key means it, not as the family's default") {
  CHECK(shape_of(changed(kDeepSeek, "n_shared_experts", "null")).shared_feed_forward == 0);
  CHECK(shape_of(changed(kDeepSeek, "n_shared_experts", "2")).shared_feed_forward == 48);
  const TransformerShape sparse = shape_of(changed(kDeepSeek, "first_k_dense_replace", "null"));
  CHECK(sparse.sparse == std::vector<bool>{true, true, true});
  const TransformerShape dense = shape_of(changed(kDeepSeek, "n_routed_experts", "null"));
  CHECK(dense.experts == 0);
  CHECK(dense.facts.unread.empty());
  CHECK(dense.feed_forward == 96);
  CHECK(shape_of(with(kDeepSeek, R"("n_group": null, "topk_group": null)")).expert_groups == 1);
  CHECK(shape_of(with(kDeepSeek, R"("num_nextn_predict_layers": null)")).further_predictions == 0);

  const std::string rest =
      R"("hidden_size": 64, "intermediate_size": 8, "num_attention_heads": 16, "vocab_size": 9,
         "num_hidden_layers": 1, "num_key_value_heads": null, "head_dim": null,
         "sliding_window": null})";
  for (const char* family : {"llama", "mistral", "qwen2", "qwen3"}) {
    CAPTURE(family);
    const TransformerShape shape =
        shape_of(R"({"model_type": ")" + std::string(family) + "\", " + rest);
    CHECK(shape.key_value_heads == 16);
    CHECK(shape.head_dim == 4);
    CHECK_FALSE(shape.window);
  }
  CHECK_FALSE(shape_of(with(kGpt2, R"("tie_word_embeddings": null)")).tied);
  CHECK(shape_of(kGpt2).feed_forward == 256);  // n_inner: null
  CHECK(shape_of(with(kQwenMoe, R"("decoder_sparse_step": null)")).sparse ==
        shape_of(kQwenMoe).sparse);
  CHECK(shape_of(changed(kQwenMoe, "mlp_only_layers", "null")).has_experts(1));
  CHECK(profile_of(with(kLlama, R"("attention_dropout": null)"), tokens(8))
            .totals.parameters.value() == 86'848);
}

TEST_CASE("a size that must be there and is null, Infinity or NaN is told at its place") {
  const auto problem = [](const std::string& value) {
    const auto shape =
        parse_huggingface(test::text_source("config.json", changed(kLlama, "vocab_size", value)));
    REQUIRE_FALSE(shape);
    REQUIRE(shape.problems().size() == 1);
    return to_text(shape.problems()).substr(0, to_text(shape.problems()).find('\n'));
  };
  CHECK(problem("null") == "config.json:2:75: error: vocab_size is null, where a size is wanted");
  CHECK(problem("Infinity") ==
        "config.json:2:75: error: vocab_size is 'Infinity', which is not a whole number");
  CHECK(problem("NaN") ==
        "config.json:2:75: error: vocab_size is 'NaN', which is not a whole number");
  CHECK(problem("-Infinity") ==
        "config.json:2:75: error: vocab_size is '-Infinity', which is negative");
  const auto rate = parse_huggingface(
      test::text_source("config.json", with(kLlama, R"("attention_dropout": NaN)")));
  REQUIRE_FALSE(rate);
  CHECK(rate.problems().front().message == "attention_dropout is 'NaN', which is not a number");
}

TEST_CASE("Infinity and NaN in keys that are not used do no harm") {
  for (const char* value : {"Infinity", "-Infinity", "NaN", "[0.0, Infinity]", R"({"a": [NaN]})"}) {
    CAPTURE(value);
    CHECK(shape_of(with(kLlama, std::string(R"("time_step_limit": )") + value)).vocabulary == 100);
  }
  // Told like any other key.
  CHECK(notes_of(with(kLlama, R"("state_limit": Infinity)")).size() == 1);
}

}  // namespace
}  // namespace plumbline
