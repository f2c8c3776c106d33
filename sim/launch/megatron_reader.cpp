// One function for each group of arguments.
//
// SPDX-License-Identifier: MIT
#include "sim/launch/megatron_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "models/import/recompute_modules.h"
#include "sim/launch/megatron_batches.h"
#include "sim/launch/megatron_model.h"

namespace plumbline {
namespace {

/// Arguments that change neither time nor memory here, by the beginning of their names: learning
/// rates, data, checkpoints, logs, seeds.
constexpr std::array kNoEffect = {"lr",
                                  "min-lr",
                                  "decoupled-",
                                  "weight-decay",
                                  "start-weight",
                                  "end-weight",
                                  "clip-grad",
                                  "adam-",
                                  "sgd-",
                                  "optim-lr",
                                  "warmup",
                                  "init-method",
                                  "data-",
                                  "train-data",
                                  "valid-data",
                                  "test-data",
                                  "mock-data",
                                  "split",
                                  "tokenizer-",
                                  "vocab-file",
                                  "merge-file",
                                  "num-workers",
                                  "dataloader",
                                  "seed",
                                  "save",
                                  "load",
                                  "ckpt-",
                                  "dist-ckpt",
                                  "use-dist-ckpt",
                                  "auto-detect",
                                  "no-save",
                                  "no-load",
                                  "finetune",
                                  "exit-",
                                  "log-",
                                  "logging-",
                                  "tensorboard",
                                  "wandb",
                                  "timing",
                                  "eval-",
                                  "skip-train",
                                  "distributed-",
                                  "master-",
                                  "node-rank",
                                  "rdzv",
                                  "rank",
                                  "local-rank",
                                  "norm-epsilon",
                                  "rotary-",
                                  "rope-",
                                  "mscale",
                                  "use-rope",
                                  "moe-aux",
                                  "moe-z-loss",
                                  "moe-router-load",
                                  "moe-router-score",
                                  "moe-router-bias",
                                  "moe-router-enable-expert-bias",
                                  "moe-router-topk-scaling",
                                  "moe-router-pre-softmax",
                                  "moe-router-dtype",
                                  "moe-router-force",
                                  "mtp-loss",
                                  "loss-scale",
                                  "initial-loss",
                                  "min-loss",
                                  "hysteresis",
                                  "attention-softmax-in-fp32",
                                  "apply-query-key",
                                  "use-mcore",
                                  "transformer-impl",
                                  "no-mmap",
                                  "no-create-attention",
                                  "reset-",
                                  "eod-mask",
                                  "profile",
                                  "nsys",
                                  "use-pytorch",
                                  "check-for-nan",
                                  "no-check-for-nan",
                                  "override-opt",
                                  "use-checkpoint",
                                  "create-attention",
                                  "bert-",
                                  "mask-prob",
                                  "short-seq",
                                  "tiktoken",
                                  "export-",
                                  "enable-one-logger",
                                  "no-one-logger",
                                  "one-logger",
                                  "app-tag",
                                  "experiment",
                                  "project",
                                  "job-",
                                  "output-",
                                  "prompt-format",
                                  "calculate-per-token",
                                  "enable-experimental",
                                  "fp8-amax",
                                  "fp8-margin",
                                  "fp8-interval",
                                  "deterministic",
                                  "no-bias-",
                                  "use-tp-pp-dp"};

bool changes_nothing(std::string_view name) {
  return std::any_of(kNoEffect.begin(), kNoEffect.end(),
                     [&](std::string_view start) { return name.starts_with(start); });
}

class MegatronReader {
 public:
  MegatronReader(LaunchArguments& arguments, const LaunchGiven& given)
      : arguments_(arguments), given_(given) {}

  ReadLaunch read() {
    read_megatron_parallelism(arguments_, given_, read_);
    read_model();
    read_megatron_batches(arguments_, read_);
    read_precision();
    read_kernels();
    read_recomputation();
    read_sharding();
    read_optimizer();
    arguments_.pass_over("num-layers");
    for (const LaunchArgument* left : arguments_.unread())
      (changes_nothing(left->name) ? read_.no_effect : read_.not_modelled).push_back(left->told);
    return std::move(read_);
  }

 private:
  Launch& launch() { return read_.launch; }

  void read_model() {
    std::int64_t blocks = 0;
    launch().config = given_.config;
    launch().mtp = arguments_.count("mtp-num-layers").value_or(0) > 0;
    if (given_.config.empty()) {
      if (auto model = read_megatron_model(arguments_, launch().tensor)) {
        launch().shape = std::move(model->shape);
        blocks = model->blocks;
        for (std::string& note : model->notes) read_.notes.push_back(std::move(note));
      }
    } else {
      blocks = arguments_.count("num-layers", 1).value_or(0);
      pass_over_megatron_model(arguments_);
      read_.notes.emplace_back(
          "the model is that of config.json; arguments on its sizes are left out");
    }
    read_megatron_stages(arguments_, blocks, read_);
  }

  void read_precision() {
    const std::string precision = lower_case(
        arguments_.word(arguments_.either({"precision", "mixed-precision", "params-dtype"})));
    const bool bf16 = arguments_.flag("bf16") || precision.find("bf16") != std::string::npos ||
                      precision.find("bfloat16") != std::string::npos;
    const bool fp16 = arguments_.flag("fp16") || precision == "16" ||
                      precision.find("fp16") != std::string::npos ||
                      precision.find("16-mixed") == 0;
    launch().dtype = bf16 ? "bf16" : fp16 ? "fp16" : "fp32";
    if (!bf16 && !fp16) read_.notes.emplace_back("no precision is given: fp32");
    const std::string format =
        lower_case(arguments_.word(arguments_.either({"fp8-format", "fp8"})));
    launch().fp8 = !format.empty() && format != "false" && format != "none";
    for (const char* of_fp8 : {"fp8-recipe", "fp8-param-gather", "fp8-param"}) {
      if (launch().fp8 && arguments_.flag(of_fp8))
        read_.not_modelled.push_back(arguments_.told(of_fp8));
      arguments_.pass_over(of_fp8);
    }
    // Megatron-LM accumulates in fp32 beside bf16 weights, unless it reduces in bf16.
    const bool reduces_in_16 =
        arguments_.flag("grad-reduce-in-bf16") || !arguments_.flag_or("grad-reduce-in-fp32", true);
    const bool in_fp32 = launch().dtype == "fp32" ||
                         arguments_.flag("accumulate-allreduce-grads-in-fp32") ||
                         (launch().dtype == "bf16" && !reduces_in_16);
    launch().gradients = in_fp32 && launch().dtype != "fp32" ? 2 : 1;
  }

  void read_kernels() {
    const std::string backend = arguments_.word("attention-backend");
    launch().flash_attention = backend != "unfused" && backend != "local";
    arguments_.pass_over("use-flash-attn");
    launch().fused_loss = arguments_.flag("cross-entropy-loss-fusion");
    launch().attention_dropout = arguments_.real("attention-dropout").value_or(0.1);
    launch().hidden_dropout = arguments_.real("hidden-dropout").value_or(0.1);
    const std::string dispatcher = arguments_.word("moe-token-dispatcher-type");
    arguments_.pass_over("moe-flex-dispatcher-backend");
    launch().dispatch_per_server =
        launch().expert > 1 && (dispatcher == "flex" || arguments_.flag("moe-enable-deepep"));
    if (launch().expert > 1 && dispatcher == "allgather")
      read_.not_modelled.push_back(arguments_.told("moe-token-dispatcher-type"));
    launch().overlapped_pairs =
        arguments_.flag("overlap-moe-expert-parallel-comm") && launch().chunks > 1;
    for (const char* usual :
         {"moe-grouped-gemm", "moe-permute-fusion", "no-rope-fusion", "no-masked-softmax-fusion",
          "no-position-embedding", "cross-entropy-fusion-impl", "manual-gc", "manual-gc-interval",
          "empty-unused-memory-level"})
      note_usual(usual);
  }

  /// Kernels and settings that the stack's times stand for already.
  void note_usual(std::string_view name) {
    if (arguments_.has(name)) read_.no_effect.push_back(arguments_.told(name));
    arguments_.pass_over(name);
  }

  void read_recomputation() {
    const std::string_view kind =
        arguments_.either({"recompute-granularity", "activations-checkpoint-granularity"});
    std::string granularity = arguments_.word(kind);
    if (arguments_.flag("recompute-activations")) granularity = "selective";
    if (arguments_.flag("checkpoint-activations")) granularity = "full";
    const std::string method =
        arguments_.word(arguments_.either({"recompute-method", "activations-checkpoint-method"}));
    const auto layers = arguments_.count(
        arguments_.either({"recompute-num-layers", "activations-checkpoint-num-layers"}));
    std::vector<std::string> modules = arguments_.words("recompute-modules");
    if (granularity == "full") {
      launch().recompute = "layers";
      if (method == "block" && layers) launch().recompute_layers = layers;
      if (method == "uniform" && layers.value_or(1) > 1)
        read_.notes.push_back(fmt::format(
            "each block is recomputed by itself, not {} together: their inputs are kept", *layers));
    } else if (granularity == "selective") {
      launch().recompute = "selective";
      if (modules.empty()) modules.emplace_back("core_attn");
      for (const std::string& module : modules) {
        const bool known = std::find(kRecomputeModules.begin(), kRecomputeModules.end(), module) !=
                           kRecomputeModules.end();
        if (known) {
          launch().recompute_modules.push_back(module);
        } else {
          read_.not_modelled.push_back("--recompute-modules " + module);
        }
      }
      if (launch().recompute_modules.empty()) launch().recompute = "none";
    }
  }

  void read_sharding() {
    const std::string optimizer = lower_case(arguments_.word("name"));
    const bool distributed = arguments_.flag("use-distributed-optimizer") ||
                             optimizer.find("distributed") != std::string::npos;
    launch().set_zero(distributed ? 1 : 0);
    const std::string strategy = arguments_.word("data-parallel-sharding-strategy");
    const bool sharded = arguments_.flag("use-megatron-fsdp") || arguments_.flag("use-custom-fsdp");
    if (sharded)
      launch().set_zero(strategy == "optim_grads_params" ? 3
                        : strategy == "optim_grads"      ? 2
                        : strategy == "no_shard"         ? 0
                                                         : 1);
    if (arguments_.flag("use-torch-fsdp2")) {
      launch().set_zero(3);
      const bool stays = arguments_.flag("torch-fsdp2-no-reshard-after-forward");
      launch().sharing.frees_after_forward = !stays;
    }
    if (arguments_.flag("overlap-grad-reduce")) {
      // distributed_data_parallel_config.py: 40 million numbers, or a million for each copy.
      const std::int64_t copies =
          launch().gpus / (launch().tensor * launch().context * launch().pipeline);
      const std::int64_t numbers =
          arguments_.count(arguments_.either({"ddp-bucket-size", "bucket-size"}), 1)
              .value_or(std::max<std::int64_t>(40'000'000, 1'000'000 * copies));
      const std::int64_t width = launch().dtype == "fp32" || launch().gradients > 1 ? 4 : 2;
      launch().bucket = Bytes{numbers * width};
    }
    launch().gathers_with_forward =
        arguments_.flag("overlap-param-gather") && (launch().zero() == 1 || launch().zero() == 2);
    read_instances();
  }

  /// Copies share within an instance, neighbours all; instances all-reduce what each of them has
  /// reduced. Experts have instances of their own groups.
  void read_instances() {
    const std::string_view key = "num-distributed-optimizer-instances";
    const std::int64_t instances = arguments_.count(key, 1).value_or(1);
    if (instances == 1) return;
    const std::int64_t sharers = launch().tensor * launch().context * launch().pipeline;
    const std::int64_t copies = launch().gpus / sharers;
    if (copies * launch().context % instances != 0) {
      arguments_.error(key, fmt::format("{} instances do not divide the {} GPUs that share a stage",
                                        instances, copies * launch().context));
    } else if (launch().zero() == 0 || launch().expert > 1 || copies % instances != 0 ||
               copies == instances) {
      read_.not_modelled.push_back(arguments_.told(key));
    } else {
      launch().sharing.degree = static_cast<std::uint32_t>(copies / instances);
    }
  }

  /// The bytes of a number of this type.
  static double width_of(const std::string& type) {
    if (type == "fp16" || type == "bf16") return 2;
    return type == "fp8" ? 1 : 4;
  }

  void read_optimizer() {
    const std::string_view precise = arguments_.either(
        {"use-precision-aware-optimizer", "use-precision-aware-optimizer-no-fp8-reset"});
    const std::string kind = lower_case(arguments_.word("optimizer"));
    if (!kind.empty() && kind.find("adam") == std::string::npos)
      read_.not_modelled.push_back(arguments_.told("optimizer"));
    const std::string main = arguments_.word("main-params-dtype");
    const std::string first = arguments_.word("exp-avg-dtype");
    const std::string second = arguments_.word("exp-avg-sq-dtype");
    arguments_.pass_over("main-grads-dtype");
    if (!arguments_.flag(precise) || launch().dtype == "fp32") return;
    launch().optimizer_state = (width_of(main) + width_of(first) + width_of(second)) / 2;
  }

  LaunchArguments& arguments_;
  const LaunchGiven& given_;
  ReadLaunch read_;
};

}  // namespace

Result<ReadLaunch> read_megatron(LaunchArguments arguments, Diagnostics& problems,
                                 const LaunchGiven& given) {
  ReadLaunch read = MegatronReader(arguments, given).read();
  if (!problems.empty()) return problems;
  return read;
}

}  // namespace plumbline
