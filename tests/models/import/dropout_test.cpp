// Dropout of a transformer: its masks, what they cost, and who says how much is dropped.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "tests/support/transformers.h"

namespace plumbline {
namespace {

using test::kGpt2;
using test::kLlama;
using test::kQwenMoe;
using test::profile_of;
using test::tokens;

/// `config` with more keys.
std::string with(std::string config, const std::string& keys) {
  return config.insert(1, keys + ", ");
}

const std::string kDropped = R"("attn_pdrop": 0.1, "resid_pdrop": 0.1, "embd_pdrop": 0.1)";

const LayerCosts& layer_of(const TransformerProfile& profile, std::size_t layer) {
  return profile.model.profile.measurements[0].layers[layer];
}

std::int64_t kept_of(const std::string& config, const TransformerOptions& options,
                     std::size_t layer = 1) {
  return layer_of(profile_of(config, options), layer).activation.count;
}

TEST_CASE("activations with dropout are those of Korthikanti et al. 2022") {
  const std::string config = with(kGpt2, kDropped);  // 64 hidden, 4 heads
  for (const std::int64_t s : {16, 64, 128}) {
    for (const std::int64_t b : {1, 2, 5}) {
      CAPTURE(s);
      CAPTURE(b);
      TransformerOptions options = tokens(s, b);
      options.flash_attention = false;
      const std::int64_t sbh = s * b * 64;
      const std::int64_t scores = s * b * 4 * s;  // s b h (a s / h)
      // Equation 1: s b h (34 + 5 a s / h).
      CHECK(kept_of(config, options) == 34 * sbh + 5 * scores);
      // Equation 2, tensor parallelism: s b h (10 + 24 / t + 5 a s / (h t)).
      options.tensor_parallel = 2;
      CHECK(kept_of(config, options) == 10 * sbh + 24 * sbh / 2 + 5 * scores / 2);
      CHECK(kept_of(config, options, 0) == 3 * sbh);  // the embedding's output and its mask
      // Section 4.2.2, sequence parallelism: s b h / t (34 + 5 a s / h).
      options.sequence_parallel = true;
      CHECK(kept_of(config, options) == (34 * sbh + 5 * scores) / 2);
      CHECK(kept_of(config, options, 0) == 3 * sbh / 2);
    }
  }
}

TEST_CASE("selective recomputation makes the softmax again with its mask, and keeps 34 s b h") {
  TransformerOptions options = tokens(128, 2);
  options.flash_attention = false;
  options.split_blocks = true;
  const auto again = [&](const std::string& config) {
    return layer_of(profile_of(config, options), 1).selective->activation.count;
  };
  constexpr std::int64_t scores = 128 * 2 * 4 * 128;
  CHECK(again(with(kGpt2, kDropped)) == again(kGpt2) + 3 * scores);
}

TEST_CASE("flash attention keeps no mask of its dropout, and the rest keeps its own") {
  const TransformerOptions options = tokens(128, 2);
  constexpr std::int64_t sbh = 128 * 2 * 64;
  CHECK(kept_of(with(kGpt2, kDropped), options) == kept_of(kGpt2, options) + 2 * sbh);
  CHECK(kept_of(with(kGpt2, R"("attn_pdrop": 0.1)"), options) == kept_of(kGpt2, options));
  const auto told = [&](const std::string& keys) {
    const TransformerProfile profile = profile_of(with(kGpt2, keys), options);
    return std::any_of(profile.notes.begin(), profile.notes.end(), [](const std::string& note) {
      return note.starts_with("flash attention keeps no mask");
    });
  };
  CHECK(told(kDropped));
  CHECK_FALSE(told(R"("resid_pdrop": 0.1)"));
}

TEST_CASE("dropout moves its tensor twice and its mask once, forward and backward") {
  TransformerOptions options = tokens(128, 2);
  options.flash_attention = false;
  const LayerWork plain = *layer_of(profile_of(kGpt2, options), 1).work;
  const LayerWork dropped = *layer_of(profile_of(with(kGpt2, kDropped), options), 1).work;
  constexpr std::int64_t numbers = 128 * 2 * 4 * 128 + 2 * 128 * 2 * 64;
  const auto more = [](const PassWork& a, const PassWork& b) {
    return a.memory_traffic.count - b.memory_traffic.count;
  };
  CHECK(more(dropped.forward, plain.forward) == 5 * numbers);  // 2 x 2 bytes and 1
  CHECK(more(dropped.backward_input, plain.backward_input) == 5 * numbers);
  CHECK(dropped.backward_weight == plain.backward_weight);
  CHECK(dropped.forward.flops == plain.forward.flops);
  options.dtype = NumberFormat::fp32;
  CHECK(more(layer_of(profile_of(with(kGpt2, kDropped), options), 1).work->forward,
             layer_of(profile_of(kGpt2, options), 1).work->forward) == 9 * numbers);
}

TEST_CASE("a share of 0 costs what no dropout does, and options go before the file") {
  TransformerOptions options = tokens(64);
  options.flash_attention = false;
  const std::string config = with(kGpt2, kDropped);
  constexpr std::int64_t sbh = 64 * 64;
  constexpr std::int64_t scores = 64 * 4 * 64;
  const std::int64_t plain = kept_of(kGpt2, options);
  CHECK(kept_of(with(kGpt2, R"("attn_pdrop": 0.0, "resid_pdrop": 0, "embd_pdrop": 0)"), options) ==
        plain);
  options.dropout = 0;
  CHECK(kept_of(config, options) == plain);
  options.attention_dropout = 0.2;
  CHECK(kept_of(config, options) == plain + 3 * scores);
  options.attention_dropout.reset();
  options.hidden_dropout = 0.2;
  CHECK(kept_of(config, options) == plain + 2 * sbh);
  options = tokens(64);
  options.dropout = 0.1;
  options.flash_attention = false;
  CHECK(kept_of(kLlama, options) ==
        kept_of(with(kLlama, R"("attention_dropout": 0.3, "hidden_dropout": 0.3)"), options));
}

TEST_CASE("dropout is read under the names that families have for it") {
  TransformerOptions options = tokens(64);
  options.flash_attention = false;
  constexpr std::int64_t sbh = 64 * 64;
  constexpr std::int64_t scores = 64 * 4 * 64;
  const auto more = [&](const std::string& key, std::size_t layer) {
    return kept_of(with(kLlama, "\"" + key + "\": 0.1"), options, layer) -
           kept_of(kLlama, options, layer);
  };
  for (const char* key : {"attention_dropout", "attention_probs_dropout_prob", "attn_dropout"}) {
    CAPTURE(key);
    CHECK(more(key, 1) == 3 * scores);
    CHECK(more(key, 0) == 0);
  }
  for (const char* key : {"hidden_dropout", "hidden_dropout_prob", "dropout"}) {
    CAPTURE(key);
    CHECK(more(key, 1) == 2 * sbh);
    CHECK(more(key, 0) == sbh);
  }
  for (const char* key : {"resid_dropout", "residual_dropout"}) {
    CAPTURE(key);
    CHECK(more(key, 1) == 2 * sbh);
    CHECK(more(key, 0) == 0);
  }
  CHECK(more("embd_dropout", 1) == 0);
  CHECK(more("embd_dropout", 0) == sbh);
  // Experts add to the residual once, as a dense MLP does.
  constexpr std::int64_t sbh_of_moe = 64 * 32;
  CHECK(kept_of(with(kQwenMoe, R"("hidden_dropout": 0.1)"), options) ==
        kept_of(kQwenMoe, options) + 2 * sbh_of_moe);
}

TEST_CASE("dropout that a file does not give is told, with what transformers would take") {
  const auto told = [](const std::string& config, const TransformerOptions& options) {
    for (const std::string& note : profile_of(config, options).notes) {
      if (note.find("counts as 0") != std::string::npos ||
          note.find("count as 0") != std::string::npos)
        return note;
    }
    return std::string();
  };
  CHECK(told(kGpt2, tokens(8)) ==
        "config.json has no attn_pdrop, resid_pdrop, embd_pdrop: they count as 0, though "
        "transformers takes 0.1 for gpt2 (--dropout sets them)");
  CHECK(told(with(kGpt2, R"("attn_pdrop": 0.1, "embd_pdrop": 0)"), tokens(8)) ==
        "config.json has no resid_pdrop: it counts as 0, though transformers takes 0.1 for gpt2 "
        "(--dropout sets it)");
  CHECK(told(kLlama, tokens(8)) ==
        "config.json has no attention_dropout: it counts as 0 (--dropout sets it)");
  CHECK(told(with(kGpt2, kDropped), tokens(8)).empty());
  CHECK(told(with(kLlama, R"("attention_dropout": 0)"), tokens(8)).empty());
  TransformerOptions given = tokens(8);
  given.dropout = 0;
  CHECK(told(kGpt2, given).empty());
}

}  // namespace
}  // namespace plumbline
