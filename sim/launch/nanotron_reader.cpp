// Names of keys as nanotron's src/nanotron/config has them.
//
// SPDX-License-Identifier: MIT
#include "sim/launch/nanotron_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace plumbline {
namespace {

using Json = nlohmann::ordered_json;

/// Sections that change neither time nor memory here.
constexpr std::string_view kIdleSections[] = {"checkpoints.",
                                              "data_stages.",
                                              "general.",
                                              "lighteval.",
                                              "logging.",
                                              "metrics_logging.",
                                              "profiler.",
                                              "s3_upload.",
                                              "tokenizer.",
                                              "optimizer.learning_rate_scheduler.",
                                              "optimizer.weight_decay",
                                              "optimizer.clip_grad",
                                              "model.init_method."};

bool is_idle(std::string_view path) {
  return std::any_of(std::begin(kIdleSections), std::end(kIdleSections),
                     [&](std::string_view section) { return path.starts_with(section); });
}

class NanotronReader {
 public:
  NanotronReader(LaunchArguments& arguments, const LaunchGiven& given)
      : arguments_(arguments), given_(given) {}

  ReadLaunch read() {
    read_parallelism();
    read_model();
    read_batches();
    read_memory();
    for (const char* usual :
         {"parallelism.tp_linear_async_communication", "parallelism.tp_recompute_allgather",
          "optimizer.optimizer_factory.torch_adam_is_fused",
          "optimizer.optimizer_factory.adam_beta1", "optimizer.optimizer_factory.adam_beta2",
          "optimizer.optimizer_factory.adam_eps"}) {
      if (arguments_.has(usual)) read_.no_effect.emplace_back(usual);
      arguments_.pass_over(usual);
    }
    for (const LaunchArgument* left : arguments_.unread()) {
      const bool of_model = left->told.starts_with("model.model_config.");
      (is_idle(left->told) || of_model ? read_.no_effect : read_.not_modelled)
          .push_back(left->told);
    }
    return std::move(read_);
  }

 private:
  Launch& launch() { return read_.launch; }

  std::int64_t needed(std::string_view path) {
    const auto value = arguments_.count(path, 1, 1'000'000'000);
    if (!value && !arguments_.has(path)) arguments_.error(path, fmt::format("{} is missing", path));
    return value.value_or(1);
  }

  void read_parallelism() {
    const std::int64_t copies = needed("parallelism.dp");
    launch().tensor = needed("parallelism.tp");
    launch().pipeline = needed("parallelism.pp");
    launch().context = arguments_.count("parallelism.context_parallel_size", 1).value_or(1);
    launch().expert = arguments_.count("parallelism.expert_parallel_size", 1).value_or(1);
    launch().gpus = copies * launch().tensor * launch().pipeline * launch().context;
    launch().gpus_per_server = std::min<std::int64_t>(8, launch().gpus);
    if (given_.gpus && *given_.gpus != launch().gpus)
      arguments_.error("parallelism.dp",
                       fmt::format("dp, tp, pp and context_parallel_size make {} GPUs, but --gpus "
                                   "is {}",
                                   launch().gpus, *given_.gpus));
    const std::string mode = lower_case(arguments_.word("parallelism.tp_mode"));
    launch().sequence_parallel = mode == "reduce_scatter" && launch().tensor > 1;
    const std::string engine = lower_case(arguments_.word("parallelism.pp_engine"));
    launch().schedule = engine == "1f1b" ? "1f1b" : "gpipe";
    if (engine != "1f1b" && engine != "afab" && launch().pipeline > 1)
      read_.notes.emplace_back(
          "parallelism.pp_engine is not given: all forwards, then all backwards");
    launch().balanced = launch().pipeline > 1;
  }

  void read_model() {
    launch().config = given_.config;
    const std::string type = lower_case(arguments_.word("model.dtype"));
    launch().dtype = type == "float32" ? "fp32" : type == "float16" ? "fp16" : "bf16";
    launch().attention_dropout = 0;
    launch().hidden_dropout = 0;
    if (!given_.config.empty()) return;
    const std::string at = "model.model_config.";
    const std::int64_t hidden = needed(at + "hidden_size");
    const std::int64_t heads = needed(at + "num_attention_heads");
    const bool known =
        arguments_.flag(at + "is_llama_config") || arguments_.flag(at + "is_qwen2_config");
    if (!known)
      arguments_.error(at + "hidden_size",
                       "the model is neither llama's nor Qwen's, whose sizes are read",
                       "--model config.json gives it");
    const std::int64_t step =
        arguments_.count("model.make_vocab_size_divisible_by", 1).value_or(1) * launch().tensor;
    const std::int64_t vocabulary = needed(at + "vocab_size");
    Json json = {
        {"model_type", "llama"},
        {"hidden_size", hidden},
        {"num_hidden_layers", needed(at + "num_hidden_layers")},
        {"num_attention_heads", heads},
        {"num_key_value_heads", arguments_.count(at + "num_key_value_heads", 1).value_or(heads)},
        {"intermediate_size", needed(at + "intermediate_size")},
        {"vocab_size", (vocabulary + step - 1) / step * step},
        {"tie_word_embeddings", arguments_.flag(at + "tie_word_embeddings")},
        {"attention_bias", arguments_.flag(at + "attention_bias")}};
    if (const auto positions = arguments_.count(at + "max_position_embeddings", 1))
      json["max_position_embeddings"] = *positions;
    read_experts(at + "moe_config.", json);
    launch().shape = json.dump(1) + '\n';
  }

  void read_experts(const std::string& at, Json& json) {
    const auto experts = arguments_.count(at + "num_experts", 1);
    if (!experts) return;
    const std::int64_t width = needed(at + "moe_intermediate_size");
    const auto shared = arguments_.count(at + "shared_expert_intermediate_size", 0);
    const bool has_shared = arguments_.flag(at + "enable_shared_expert");
    json["num_experts_per_tok"] = arguments_.count(at + "top_k", 1).value_or(2);
    json["head_dim"] = json["hidden_size"].get<std::int64_t>() /
                       std::max<std::int64_t>(1, json["num_attention_heads"].get<std::int64_t>());
    if (!has_shared) {
      json["model_type"] = "mixtral";
      json["num_local_experts"] = *experts;
      json["intermediate_size"] = width;
      json["sliding_window"] = nullptr;
      json.erase("attention_bias");
      return;
    }
    json["model_type"] = "glm4_moe";
    json["n_routed_experts"] = *experts;
    json["moe_intermediate_size"] = width;
    if (shared.value_or(0) % width != 0)
      arguments_.error(at + "shared_expert_intermediate_size",
                       fmt::format("the shared expert is {} wide, which the experts' {} do not "
                                   "divide",
                                   *shared, width));
    json["n_shared_experts"] = shared.value_or(0) / width;
    json["first_k_dense_replace"] = 0;
    json["n_group"] = 1;
    json["topk_group"] = 1;
  }

  void read_batches() {
    launch().sequence = needed("tokens.sequence_length");
    launch().micro_batch_size = needed("tokens.micro_batch_size");
    const std::int64_t rounds =
        arguments_.count("tokens.batch_accumulation_per_replica", 1).value_or(1);
    const std::int64_t copies =
        launch().gpus / (launch().tensor * launch().pipeline * launch().context);
    launch().mini_batch_size = launch().micro_batch_size * rounds * copies;
    constexpr std::int64_t max = 1'000'000'000'000;
    const auto steps = arguments_.count("tokens.train_steps", 1, max);
    const std::int64_t of_step = launch().mini_batch_size * launch().sequence;
    if (steps && of_step < max && *steps < 1'000'000'000'000'000 / of_step)
      launch().tokens = *steps * of_step;
    for (const char* idle :
         {"tokens.limit_test_batches", "tokens.limit_val_batches", "tokens.val_check_interval"}) {
      if (arguments_.has(idle)) read_.no_effect.emplace_back(idle);
      arguments_.pass_over(idle);
    }
  }

  void read_memory() {
    launch().set_zero(arguments_.count("optimizer.zero_stage", 0, 3).value_or(0));
    if (launch().zero() > 1)
      read_.notes.push_back(
          fmt::format("optimizer.zero_stage is {}, as it is written", launch().zero()));
    const bool in_fp32 = arguments_.flag("optimizer.accumulate_grad_in_fp32");
    launch().gradients = in_fp32 && launch().dtype != "fp32" ? 2 : 1;
    if (const auto bucket = arguments_.count("model.ddp_bucket_cap_mb", 1, 1'000'000))
      launch().bucket = Bytes{*bucket << 20};
    launch().recompute = arguments_.flag("parallelism.recompute_layer") ? "layers" : "none";
    const std::string optimizer = lower_case(arguments_.word("optimizer.optimizer_factory.name"));
    if (!optimizer.empty() && optimizer.find("adam") == std::string::npos)
      read_.not_modelled.emplace_back("optimizer.optimizer_factory.name");
  }

  LaunchArguments& arguments_;
  const LaunchGiven& given_;
  ReadLaunch read_;
};

}  // namespace

Result<ReadLaunch> read_nanotron(LaunchArguments arguments, Diagnostics& problems,
                                 const LaunchGiven& given) {
  ReadLaunch read = NanotronReader(arguments, given).read();
  if (!problems.empty()) return problems;
  return read;
}

}  // namespace plumbline
