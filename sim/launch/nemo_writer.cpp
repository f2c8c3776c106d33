// Names of keys as the configurations of Megatron-Bridge and Megatron Core have them.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/launch/launch_writers.h"

namespace plumbline {
namespace {

class NemoWriter {
 public:
  explicit NemoWriter(const ScenarioLaunch& made) : launch_(made.launch), notes_(made.notes) {}

  Result<EmittedLaunch> write() {
    if (launch_.pipeline > 1 && launch_.schedule != "1f1b" &&
        launch_.schedule != "interleaved-1f1b")
      return no_such_schedule("NeMo", launch_, "1f1b or interleaved-1f1b");
    notes_.insert(notes_.begin(),
                  {fmt::format("torchrun --nproc-per-node {} --nnodes {}, beside a recipe that has "
                               "the model: {}",
                               launch_.gpus_per_server, launch_.gpus / launch_.gpus_per_server,
                               launch_.config)});
    add_model();
    add_recomputation();
    add_training();
    add_sharding();
    return EmittedLaunch{comments_of(notes_) + text_, {}};
  }

 private:
  void section(std::string_view name) { text_ += fmt::format("{}:\n", name); }
  template <class Value>
  void key(std::string_view name, const Value& value) {
    text_ += fmt::format("  {}: {}\n", name, value);
  }

  void add_model() {
    section("model");
    key("seq_length", launch_.sequence);
    key("attention_dropout", launch_.attention_dropout.value_or(0));
    key("hidden_dropout", launch_.hidden_dropout.value_or(0));
    key("tensor_model_parallel_size", launch_.tensor);
    key("sequence_parallel", launch_.sequence_parallel && launch_.tensor > 1);
    key("pipeline_model_parallel_size", launch_.pipeline);
    // A null takes back what a recipe says.
    key("pipeline_model_parallel_layout",
        launch_.layout.empty() ? "null" : fmt::format("\"{}\"", launch_.layout));
    const bool has_chunks = launch_.layout.empty() && launch_.chunks > 1;
    key("virtual_pipeline_model_parallel_size",
        has_chunks ? std::to_string(launch_.chunks) : "null");
    key("context_parallel_size", launch_.context);
    if (launch_.context > 1) key("cp_comm_type", launch_.context_by_heads ? "a2a" : "p2p");
    key("expert_model_parallel_size", launch_.expert);
    if (launch_.expert > 1) {
      key("expert_tensor_parallel_size", launch_.expert_tensor);
      key("moe_token_dispatcher_type", launch_.dispatch_per_server ? "flex" : "alltoall");
    }
    key("cross_entropy_loss_fusion", launch_.fused_loss);
    if (!launch_.flash_attention) key("attention_backend", "unfused");
    if (launch_.overlapped_pairs) key("overlap_moe_expert_parallel_comm", true);
  }

  void add_recomputation() {
    if (launch_.recompute == "none") key("recompute_granularity", "null");
    if (launch_.recompute == "layers") {
      key("recompute_granularity", "full");
      key("recompute_method", launch_.recompute_layers ? "block" : "uniform");
      key("recompute_num_layers", launch_.recompute_layers.value_or(1));
    } else if (launch_.recompute == "selective") {
      std::vector<std::string> modules = launch_.recompute_modules;
      if (modules.empty()) modules = {"layernorm"};
      key("recompute_granularity", "selective");
      key("recompute_modules", fmt::format("[{}]", fmt::join(modules, ", ")));
      if (launch_.recompute_layers)
        notes_.emplace_back("these modules are recomputed in all blocks, not in some");
    }
  }

  void add_training() {
    section("train");
    key("micro_batch_size", launch_.micro_batch_size);
    key("global_batch_size", launch_.mini_batch_size);
    if (const auto steps = steps_of(launch_)) key("train_iters", *steps);
    text_ += fmt::format("dataset:\n  seq_length: {}\n", launch_.sequence);
    if (launch_.gradients <= 1 && launch_.dtype != "fp32")
      notes_.emplace_back(
          "gradients in bf16 need a MixedPrecisionConfig with grad_reduce_in_fp32: false");
    text_ += fmt::format("mixed_precision: {}\n", precision());
  }

  std::string_view precision() const {
    if (launch_.dtype == "fp32") return "null";
    if (launch_.fp8) return "bf16_with_fp8_delayed_scaling_mixed";
    return launch_.dtype == "fp16" ? "fp16_mixed" : "bf16_mixed";
  }

  void add_sharding() {
    tell_unsaid_sharing(launch_, "Megatron-Bridge", /*has_degree=*/true, notes_);
    section("ddp");
    key("use_distributed_optimizer", launch_.zero() > 0);
    if (launch_.zero() > 1) {
      key("use_megatron_fsdp", true);
      key("data_parallel_sharding_strategy",
          launch_.zero() == 2 ? "optim_grads" : "optim_grads_params");
    }
    if (const auto instances = instances_of(launch_, notes_))
      key("num_distributed_optimizer_instances", *instances);
    key("grad_reduce_in_fp32", launch_.gradients > 1);
    key("overlap_grad_reduce", launch_.bucket.has_value());
    if (launch_.bucket) {
      const std::int64_t width = launch_.dtype == "fp32" || launch_.gradients > 1 ? 4 : 2;
      key("bucket_size", std::max<std::int64_t>(1, launch_.bucket->count / width));
    }
    key("overlap_param_gather", launch_.gathers_with_forward);
  }

  const Launch& launch_;
  std::vector<std::string> notes_;
  std::string text_;
};

}  // namespace

Result<EmittedLaunch> nemo_launch(const ScenarioLaunch& made) { return NemoWriter(made).write(); }

}  // namespace plumbline
