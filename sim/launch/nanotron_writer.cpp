// Names of keys as nanotron's src/nanotron/config has them.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>

#include "base/json_tree.h"
#include "sim/launch/config_keys.h"
#include "sim/launch/launch_writers.h"

namespace plumbline {
namespace {

class NanotronWriter {
 public:
  explicit NanotronWriter(const ScenarioLaunch& made) : launch_(made.launch), notes_(made.notes) {}

  Result<EmittedLaunch> write() {
    const bool is_known = launch_.schedule == "1f1b" || launch_.schedule == "gpipe";
    if (launch_.pipeline > 1 && (!is_known || launch_.chunks > 1))
      return no_such_schedule("nanotron", launch_, "1f1b or gpipe");
    const auto config = read_json(launch_.config);
    if (!config) return config.problems();
    add_model(ConfigKeys(*config));
    add_optimizer();
    add_parallelism();
    add_tokens();
    tell_what_is_missing();
    return EmittedLaunch{comments_of(notes_) + text_, {}};
  }

 private:
  void line(std::string text) { text_ += std::move(text) + '\n'; }

  void add_model(const ConfigKeys& keys) {
    line("model:");
    if (launch_.bucket)
      line(fmt::format("  ddp_bucket_cap_mb: {}",
                       std::max<std::int64_t>(1, launch_.bucket->count >> 20)));
    line(fmt::format("  dtype: {}", launch_.dtype == "fp32"   ? "float32"
                                    : launch_.dtype == "fp16" ? "float16"
                                                              : "bfloat16"));
    line("  make_vocab_size_divisible_by: 1");
    const std::string family = keys.word("model_type");
    if (family != "llama" && family != "qwen2") {
      notes_.push_back(fmt::format("model.model_config is not here: the sizes of '{}' are in {}",
                                   clipped(family), launch_.config));
      return;
    }
    const std::int64_t heads = keys.count("num_attention_heads", 1);
    line("  model_config:");
    line(fmt::format("    is_{}_config: true", family));
    line(fmt::format("    hidden_size: {}", keys.count("hidden_size", 1)));
    line(fmt::format("    num_hidden_layers: {}", keys.count("num_hidden_layers", 1)));
    line(fmt::format("    num_attention_heads: {}", heads));
    line(fmt::format("    num_key_value_heads: {}", keys.count("num_key_value_heads", heads)));
    line(fmt::format("    intermediate_size: {}", keys.count("intermediate_size", 1)));
    line(fmt::format("    vocab_size: {}", keys.count("vocab_size", 1)));
    line(fmt::format("    tie_word_embeddings: {}", keys.flag("tie_word_embeddings", false)));
    if (keys.flag("attention_bias", false) || family == "qwen2") line("    attention_bias: true");
    if (const std::int64_t positions = keys.count("max_position_embeddings", 0); positions > 0)
      line(fmt::format("    max_position_embeddings: {}", positions));
  }

  void add_optimizer() {
    line("optimizer:");
    line(fmt::format("  accumulate_grad_in_fp32: {}",
                     launch_.gradients > 1 && launch_.dtype != "fp32"));
    line(fmt::format("  zero_stage: {}", std::min<std::int64_t>(launch_.zero(), 1)));
    if (launch_.zero() > 1)
      notes_.emplace_back("nanotron shares the optimizer's state, and no more");
  }

  void add_parallelism() {
    line("parallelism:");
    line(fmt::format("  dp: {}", copies_of(launch_)));
    line(fmt::format("  tp: {}", launch_.tensor));
    line(fmt::format("  pp: {}", launch_.pipeline));
    if (launch_.context > 1) line(fmt::format("  context_parallel_size: {}", launch_.context));
    if (launch_.expert > 1) line(fmt::format("  expert_parallel_size: {}", launch_.expert));
    line(fmt::format("  pp_engine: {}", launch_.schedule == "gpipe" ? "afab" : "1f1b"));
    line(fmt::format("  tp_mode: {}", launch_.sequence_parallel ? "REDUCE_SCATTER" : "ALL_REDUCE"));
    line(fmt::format("  recompute_layer: {}", launch_.recompute == "layers"));
    if (launch_.recompute == "selective")
      notes_.emplace_back("nanotron recomputes whole blocks or nothing: nothing");
    if (launch_.recompute == "layers" && launch_.recompute_layers)
      notes_.emplace_back("nanotron recomputes all blocks, not some");
    if (!launch_.layout.empty())
      notes_.push_back(fmt::format("nanotron cuts the stages by itself: not {}", launch_.layout));
  }

  void add_tokens() {
    line("tokens:");
    line(fmt::format("  batch_accumulation_per_replica: {}", rounds_of(launch_)));
    line(fmt::format("  micro_batch_size: {}", launch_.micro_batch_size));
    line(fmt::format("  sequence_length: {}", launch_.sequence));
    if (const auto steps = steps_of(launch_)) line(fmt::format("  train_steps: {}", *steps));
  }

  void tell_what_is_missing() {
    tell_unsaid(launch_, "nanotron", notes_);
    if (launch_.sharing.degree > 0)
      notes_.emplace_back("nanotron has no key for training.shard_degree: all copies share");
    if (launch_.fp8) notes_.emplace_back("nanotron does not multiply in fp8");
    notes_.emplace_back("general, tokenizer, data_stages, and rates of optimizer are yours");
  }

  const Launch& launch_;
  std::vector<std::string> notes_;
  std::string text_;
};

}  // namespace

Result<EmittedLaunch> nanotron_launch(const ScenarioLaunch& made) {
  return NanotronWriter(made).write();
}

}  // namespace plumbline
