// From config.json files to shapes: nested texts, lists of blocks, and what is refused.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "models/architectures/huggingface.h"
#include "tests/support/transformers.h"

namespace plumbline {
namespace {

using test::profile_of;
using test::shape_of;
using test::text_source;
using test::tokens;

const std::string kSizes =
    R"("hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4,
       "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 100)";

std::string file_of(const std::string& type, const std::string& more = "") {
  return "{\"model_type\": \"" + type + "\", " + kSizes + (more.empty() ? "" : ", ") + more + "}";
}

std::string problem_of(const std::string& config, std::string_view like = "") {
  const auto shape = parse_huggingface(text_source("config.json", config), like);
  REQUIRE_FALSE(shape);
  return shape.problems().front().message;
}

/// The kinds of layers, in the order of the model, with blanks between.
std::string kinds_of(const std::string& config, const TransformerOptions& options) {
  std::string kinds;
  const TransformerProfile profile = profile_of(config, options);
  for (const Layer& layer : profile.model.graph.layers())
    kinds += (kinds.empty() ? "" : " ") + layer.kind;
  return kinds;
}

TEST_CASE("the text of a file for text and images is read, with what the file says for both") {
  const std::string text = R"({"model_type": "qwen3_vl_text", "head_dim": 16, )" + kSizes + "}";
  const TransformerShape shape = shape_of(
      R"({"model_type": "qwen3_vl", "audio_config": null, "tie_word_embeddings": true,
          "vision_config": {"depth": 3, "hidden_size": 8, "intermediate_size": 16},
          "text_config": )" +
      text + "}");
  CHECK(shape.family == "qwen3_vl");
  CHECK(shape.blocks == 4);
  CHECK(shape.tied);
  CHECK(shape.query_key_norm);
  REQUIRE(shape.facts.notes.size() == 1);
  // 3 blocks of 4 x 8 x 8 and 2 x 8 x 16 numbers.
  CHECK(shape.facts.notes[0].find("at least 1536 parameters, and 3072 FLOP") != std::string::npos);
}

TEST_CASE("layer_types and patterns give blocks their windows") {
  const std::string kinds =
      kinds_of(file_of("gpt_oss", R"("num_local_experts": 4, "num_experts_per_tok": 2,
                                     "head_dim": 16, "sliding_window": 8)"),
               tokens(32));
  CHECK(kinds == "embedding sliding_moe_block moe_block sliding_moe_block moe_block head");
  CHECK(kinds_of(file_of("gemma2", R"("head_dim": 16)"), tokens(32)) ==
        "embedding sliding_block block sliding_block block head");
}

TEST_CASE("qwen's windows begin at max_window_layers") {
  const TransformerShape shape =
      shape_of(file_of("qwen2", R"("use_sliding_window": true, "sliding_window": 16,
                                   "max_window_layers": 3)"));
  REQUIRE(shape.kinds.size() == 2);
  const std::vector<std::uint8_t> expected = {0, 0, 0, 1};
  CHECK(shape.kind_of == expected);
  CHECK_FALSE(shape.kinds[0].block.window);
  CHECK(shape.kinds[1].block.window == 16);
}

TEST_CASE("llama 4 has experts in each nth block, and chunks in three of four") {
  const std::string kinds = kinds_of(
      file_of("llama4_text", R"("num_local_experts": 4, "num_experts_per_tok": 1, "head_dim": 16,
                                "intermediate_size_mlp": 192, "interleave_moe_layer_step": 2)"),
      tokens(32));
  CHECK(kinds == "embedding chunked_block chunked_moe_block chunked_block moe_block head");
}

TEST_CASE("an unknown architecture is refused with what is needed, or read like another") {
  CHECK(problem_of(file_of("bert")) ==
        "model_type is 'bert', which is no architecture that is read");
  const auto like = parse_huggingface(text_source("config.json", file_of("bert")), "llama");
  REQUIRE(like);
  CHECK(like->family == "bert");
  REQUIRE_FALSE(like->facts.notes.empty());
  CHECK(like->facts.notes[0] ==
        "model_type is 'bert', read like llama: its blocks are taken to have what those of llama "
        "have, by keys of the same names");
  const auto nameless = parse_huggingface(text_source("config.json", "{" + kSizes + "}"), "llama");
  CHECK(nameless);
  CHECK(problem_of(file_of("llama"), "nonsense") ==
        "--like is 'nonsense', which is no architecture that is read");
}

TEST_CASE("what an architecture needs and a file lacks is told by its key") {
  CHECK(problem_of(file_of("nemotron_h", R"("head_dim": 16)")).find("hybrid_override_pattern") !=
        std::string::npos);
  CHECK(problem_of(file_of("gemma4", R"("hidden_size_per_layer_input": 8)"))
            .find("hidden_size_per_layer_input") != std::string::npos);
  CHECK(problem_of(file_of("olmo3", R"("layer_types": ["full_attention"])")) ==
        "layer_types has 1 entries, but the model 4 blocks");
  CHECK(problem_of(file_of("gpt_oss", R"("num_local_experts": 2, "num_experts_per_tok": 3)")) ==
        "num_experts_per_tok is 3, but num_local_experts is 2");
  CHECK(problem_of(R"({"model_type": "nemotron-nas", "hidden_size": 64, "num_hidden_layers": 1,
                       "num_attention_heads": 4, "vocab_size": 10,
                       "block_configs": [{"attention": {"n_heads_in_group": 3}}]})") ==
        "n_heads_in_group is 3, which does not divide num_attention_heads, 4");
}

TEST_CASE("architectures have names of their own") {
  const std::vector<std::string> names = architecture_names();
  CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
  CHECK(names.size() > 60);
}

}  // namespace
}  // namespace plumbline
