// Names of options as megatron/training/arguments.py and the configurations beside it have them.
//
// SPDX-License-Identifier: MIT
#include "sim/launch/megatron_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/json_tree.h"
#include "sim/launch/config_keys.h"
#include "sim/launch/launch_writers.h"

namespace plumbline {
namespace {

/// Options, in lines that a shell takes as one.
class OptionLines {
 public:
  void add(std::string option) { lines_.push_back(std::move(option)); }
  template <class Value>
  void add(std::string_view name, const Value& value) {
    add(fmt::format("{} {}", name, value));
  }
  std::string text(std::string command) const {
    for (const std::string& line : lines_) command += " \\\n  " + line;
    return command + '\n';
  }

 private:
  std::vector<std::string> lines_;
};

/// The options of a model's own sizes. Returns whether they are known for its family.
class ModelOptions {
 public:
  ModelOptions(const ConfigKeys& keys, OptionLines& lines) : keys_(keys), lines_(lines) {}

  bool write(bool mtp) {
    const std::string family = keys_.word("model_type");
    if (family == "gpt2") return write_gpt2();
    const bool gated = family == "llama" || family == "mistral" || family == "qwen2" ||
                       family == "qwen3" || is_one_of(family, {"mixtral", "qwen3_moe"}) ||
                       is_one_of(family, {"glm4_moe", "deepseek_v3"});
    const bool plain = is_one_of(family, {"starcoder2", "nemotron"});
    if (!gated && !plain) return false;
    latent_ = family == "deepseek_v3";
    write_sizes();
    lines_.add("--position-embedding-type rope");
    if (gated) lines_.add("--swiglu --normalization RMSNorm");
    if (family == "nemotron") lines_.add("--squared-relu");
    if (is_one_of(family, {"qwen3", "qwen3_moe"}) || keys_.flag("use_qk_norm", false) || latent_)
      lines_.add("--qk-layernorm");
    const bool bias = is_one_of(family, {"llama", "qwen3", "nemotron"})
                          ? keys_.flag("attention_bias", false)
                          : family == "starcoder2" && keys_.flag("use_bias", true);
    if (!bias) lines_.add("--disable-bias-linear");
    if (family == "qwen2" || (family == "glm4_moe" && keys_.flag("attention_bias", false)))
      lines_.add("--add-qkv-bias");
    if (!keys_.flag("tie_word_embeddings", family == "starcoder2"))
      lines_.add("--untie-embeddings-and-output-weights");
    if (latent_) write_latent();
    write_experts(family);
    if (mtp) lines_.add("--mtp-num-layers", keys_.count("num_nextn_predict_layers", 1));
    return true;
  }

 private:
  static bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
    return std::find(words.begin(), words.end(), word) != words.end();
  }

  bool write_gpt2() {
    lines_.add(fmt::format("--num-layers {} --hidden-size {} --num-attention-heads {}",
                           keys_.count("n_layer", 1), keys_.count("n_embd", 1),
                           keys_.count("n_head", 1)));
    lines_.add("--ffn-hidden-size", keys_.count("n_inner", 4 * keys_.count("n_embd", 1)));
    lines_.add("--max-position-embeddings", keys_.count("n_positions", 1024));
    lines_.add(fmt::format("--vocab-size {} --make-vocab-size-divisible-by 1",
                           keys_.count("vocab_size", 1)));
    if (!keys_.flag("tie_word_embeddings", true))
      lines_.add("--untie-embeddings-and-output-weights");
    return true;
  }

  void write_sizes() {
    const std::int64_t hidden = keys_.count("hidden_size", 1);
    const std::int64_t heads = keys_.count("num_attention_heads", 1);
    lines_.add(fmt::format("--num-layers {} --hidden-size {} --num-attention-heads {}",
                           keys_.count("num_hidden_layers", 1), hidden, heads));
    if (!latent_) {
      const std::int64_t groups = keys_.count("num_key_value_heads", heads);
      if (groups != heads)
        lines_.add(fmt::format("--group-query-attention --num-query-groups {}", groups));
      lines_.add("--kv-channels", keys_.count("head_dim", hidden / heads));
    }
    lines_.add("--ffn-hidden-size", keys_.count("intermediate_size", 4 * hidden));
    lines_.add(fmt::format("--vocab-size {} --make-vocab-size-divisible-by 1",
                           keys_.count("vocab_size", 1)));
    if (const std::int64_t positions = keys_.count("max_position_embeddings", 0); positions > 0)
      lines_.add("--max-position-embeddings", positions);
  }

  void write_latent() {
    lines_.add("--multi-latent-attention");
    if (const std::int64_t rank = keys_.count("q_lora_rank", 0); rank > 0)
      lines_.add("--q-lora-rank", rank);
    lines_.add(
        fmt::format("--kv-lora-rank {} --qk-head-dim {} --qk-pos-emb-head-dim {} --v-head-dim {}",
                    keys_.count("kv_lora_rank", 512), keys_.count("qk_nope_head_dim", 128),
                    keys_.count("qk_rope_head_dim", 64), keys_.count("v_head_dim", 128)));
  }

  void write_experts(const std::string& family) {
    const std::string_view key = family == "mixtral"     ? "num_local_experts"
                                 : family == "qwen3_moe" ? "num_experts"
                                                         : "n_routed_experts";
    const std::int64_t experts = keys_.count(key, 0);
    if (experts == 0) return;
    const std::int64_t width = family == "mixtral" ? keys_.count("intermediate_size", 1)
                                                   : keys_.count("moe_intermediate_size", 1);
    lines_.add(fmt::format("--num-experts {} --moe-router-topk {} --moe-ffn-hidden-size {}",
                           experts, keys_.count("num_experts_per_tok", 2), width));
    lines_.add("--moe-grouped-gemm");
    if (const std::int64_t shared = keys_.count("n_shared_experts", 0); shared > 0)
      lines_.add("--moe-shared-expert-intermediate-size", shared * width);
    const std::int64_t blocks = keys_.count("num_hidden_layers", 1);
    const std::int64_t dense = keys_.count("first_k_dense_replace", 0);
    if (dense > 0)
      lines_.add(fmt::format("--moe-layer-freq '[0]*{}+[1]*{}'", dense, blocks - dense));
    const std::int64_t groups = keys_.count("n_group", 1);
    const std::int64_t chosen = keys_.count("topk_group", 1);
    if (groups > 1 && chosen > 0)
      lines_.add(
          fmt::format("--moe-router-num-groups {} --moe-router-group-topk {}", groups, chosen));
  }

  const ConfigKeys& keys_;
  OptionLines& lines_;
  bool latent_ = false;
};

class MegatronWriter {
 public:
  explicit MegatronWriter(const ScenarioLaunch& made) : launch_(made.launch), notes_(made.notes) {}

  Result<std::string> write() {
    if (launch_.schedule != "1f1b" && launch_.schedule != "interleaved-1f1b") {
      return no_such_schedule("Megatron-LM", launch_, "1f1b or interleaved-1f1b");
    }
    const auto config = read_json(launch_.config);
    if (!config) return config.problems();
    const ConfigKeys keys(*config);
    if (!ModelOptions(keys, lines_).write(launch_.mtp)) {
      notes_.push_back(fmt::format(
          "the options of the model are not here: '{}' is none that is written; its config.json is "
          "{}",
          clipped(keys.word("model_type")), launch_.config));
    }
    add_model_settings();
    add_parallelism();
    add_batches();
    add_recomputation(keys);
    add_sharding();
    return comments_of(notes_) +
           lines_.text(fmt::format("torchrun --nproc-per-node {} --nnodes {} pretrain_gpt.py",
                                   launch_.gpus_per_server,
                                   launch_.gpus / launch_.gpus_per_server));
  }

 private:
  void add_model_settings() {
    lines_.add(fmt::format("--attention-dropout {} --hidden-dropout {}",
                           launch_.attention_dropout.value_or(0),
                           launch_.hidden_dropout.value_or(0)));
    lines_.add("--seq-length", launch_.sequence);
    if (launch_.dtype != "fp32") lines_.add("--" + launch_.dtype);
    if (launch_.fp8) lines_.add("--fp8-format hybrid");
    if (!launch_.flash_attention) lines_.add("--attention-backend unfused");
    if (launch_.fused_loss) lines_.add("--cross-entropy-loss-fusion");
  }

  void add_parallelism() {
    lines_.add("--tensor-model-parallel-size", launch_.tensor);
    if (launch_.sequence_parallel) lines_.add("--sequence-parallel");
    lines_.add("--pipeline-model-parallel-size", launch_.pipeline);
    if (launch_.context > 1)
      lines_.add(fmt::format("--context-parallel-size {} --cp-comm-type {}", launch_.context,
                             launch_.context_by_heads ? "a2a" : "p2p"));
    if (launch_.expert > 1) {
      lines_.add(fmt::format("--expert-model-parallel-size {} --expert-tensor-parallel-size {}",
                             launch_.expert, launch_.expert_tensor));
      lines_.add("--moe-token-dispatcher-type", launch_.dispatch_per_server ? "flex" : "alltoall");
    }
    if (!launch_.layout.empty()) {
      lines_.add(fmt::format("--pipeline-model-parallel-layout '{}'", launch_.layout));
    } else if (launch_.chunks > 1) {
      lines_.add("--num-virtual-stages-per-pipeline-rank", launch_.chunks);
    }
    if (launch_.overlapped_pairs) lines_.add("--overlap-moe-expert-parallel-comm");
  }

  void add_batches() {
    lines_.add(fmt::format("--micro-batch-size {} --global-batch-size {}", launch_.micro_batch_size,
                           launch_.mini_batch_size));
    if (launch_.tokens) lines_.add("--train-samples", *launch_.tokens / launch_.sequence);
  }

  /// The modules that cost little, of those that the model has.
  static std::vector<std::string> usual_modules(const ConfigKeys& keys) {
    std::vector<std::string> modules = {"layernorm"};
    for (const char* experts : {"n_routed_experts", "num_experts", "num_local_experts"}) {
      if (keys.count(experts, 0) > 0) modules.emplace_back("moe_act");
    }
    if (keys.count("kv_lora_rank", 0) > 0) modules.emplace_back("mla_up_proj");
    return modules;
  }

  void add_recomputation(const ConfigKeys& keys) {
    if (launch_.recompute == "layers") {
      lines_.add(launch_.recompute_layers
                     ? fmt::format("--recompute-granularity full --recompute-method block "
                                   "--recompute-num-layers {}",
                                   *launch_.recompute_layers)
                     : std::string("--recompute-granularity full --recompute-method uniform "
                                   "--recompute-num-layers 1"));
    } else if (launch_.recompute == "selective") {
      std::vector<std::string> modules = launch_.recompute_modules;
      if (modules.empty()) modules = usual_modules(keys);
      std::erase(modules, "mlp_act");
      lines_.add(fmt::format("--recompute-granularity selective --recompute-modules {}",
                             fmt::join(modules, " ")));
      if (launch_.recompute_layers)
        notes_.emplace_back("Megatron-LM recomputes these modules of all blocks, not of some");
      if (std::find(launch_.recompute_modules.begin(), launch_.recompute_modules.end(),
                    "mlp_act") != launch_.recompute_modules.end())
        notes_.emplace_back("Megatron-LM does not recompute mlp_act");
    }
  }

  void add_sharding() {
    tell_unsaid_sharing(launch_, "Megatron-LM", /*has_degree=*/true, notes_);
    if (launch_.zero() == 1) lines_.add("--use-distributed-optimizer");
    if (launch_.zero() > 1)
      lines_.add(fmt::format("--use-megatron-fsdp --data-parallel-sharding-strategy {}",
                             launch_.zero() == 2 ? "optim_grads" : "optim_grads_params"));
    if (const auto instances = instances_of(launch_, notes_))
      lines_.add(fmt::format("--num-distributed-optimizer-instances {}", *instances));
    if (launch_.bucket) {
      const std::int64_t width = launch_.dtype == "fp32" || launch_.gradients > 1 ? 4 : 2;
      lines_.add(fmt::format("--overlap-grad-reduce --ddp-bucket-size {}",
                             std::max<std::int64_t>(1, launch_.bucket->count / width)));
    }
    if (launch_.gathers_with_forward) lines_.add("--overlap-param-gather");
    if (launch_.dtype == "bf16" && launch_.gradients <= 1) lines_.add("--grad-reduce-in-bf16");
    if (launch_.dtype == "fp16" && launch_.gradients > 1)
      lines_.add("--accumulate-allreduce-grads-in-fp32");
    if (launch_.optimizer_state)
      notes_.push_back(
          fmt::format("the optimizer keeps {} bytes for each byte of parameters, which "
                      "--use-precision-aware-optimizer and the types beside it decide",
                      *launch_.optimizer_state));
  }

  const Launch& launch_;
  std::vector<std::string> notes_;
  OptionLines lines_;
};

}  // namespace

Result<std::string> megatron_text(const ScenarioLaunch& made) {
  return MegatronWriter(made).write();
}

}  // namespace plumbline
