// Names of keys as DeepSpeed's documentation of its configuration JSON has them.
//
// SPDX-License-Identifier: MIT
#include "sim/launch/deepspeed_reader.h"

#include <fmt/format.h>

#include <algorithm>

namespace plumbline {
namespace {

/// Keys that change neither time nor memory here, by the beginning of their paths.
constexpr std::string_view kIdleKeys[] = {"optimizer.params",
                                          "scheduler.",
                                          "gradient_clipping",
                                          "steps_per_print",
                                          "wall_clock_breakdown",
                                          "tensorboard.",
                                          "wandb.",
                                          "csv_monitor.",
                                          "comms_logger.",
                                          "flops_profiler.",
                                          "dump_state",
                                          "fp16.",
                                          "checkpoint.",
                                          "data_efficiency.",
                                          "prescale_gradients",
                                          "gradient_predivide_factor",
                                          "zero_allow_untested_optimizer",
                                          "memory_breakdown"};

class DeepspeedReader {
 public:
  DeepspeedReader(LaunchArguments& arguments, const LaunchGiven& given, std::int64_t sequence)
      : arguments_(arguments), given_(given), sequence_(sequence) {}

  ReadLaunch read() {
    launch().config = given_.config;
    launch().sequence = sequence_;
    read_parallelism();
    read_batches();
    read_sharding();
    read_recomputation();
    for (const LaunchArgument* left : arguments_.unread()) {
      const bool is_idle =
          std::any_of(std::begin(kIdleKeys), std::end(kIdleKeys),
                      [&](std::string_view start) { return left->told.starts_with(start); });
      (is_idle ? read_.no_effect : read_.not_modelled).push_back(left->told);
    }
    return std::move(read_);
  }

 private:
  Launch& launch() { return read_.launch; }

  /// A count; "auto" is an error that says what is needed.
  std::optional<std::int64_t> count(std::string_view path) {
    if (arguments_.word(path) == "auto") {
      arguments_.error(path, fmt::format("{} is 'auto': the trainer decides it", path),
                       "a number in the file");
      return std::nullopt;
    }
    return arguments_.count(path, 1, 1'000'000'000);
  }

  void read_parallelism() {
    launch().tensor = count("tensor_parallel.autotp_size").value_or(1);
    launch().context = count("sequence_parallel_size").value_or(1);
    launch().context_by_heads = launch().context > 1;  // DeepSpeed Ulysses
    launch().pipeline = count("pipeline.stages").value_or(1);
    const bool bf16 = arguments_.flag("bf16.enabled") || arguments_.flag("bfloat16.enabled");
    launch().dtype = bf16 ? "bf16" : arguments_.flag("fp16.enabled") ? "fp16" : "fp32";
    for (const char* path : {"bf16.enabled", "fp16.enabled"}) {
      if (arguments_.word(path) == "auto")
        arguments_.error(path, fmt::format("{} is 'auto': the trainer decides it", path),
                         "true or false in the file");
    }
  }

  void read_batches() {
    const auto micro = count("train_micro_batch_size_per_gpu");
    const auto rounds = count("gradient_accumulation_steps");
    const auto whole = count("train_batch_size");
    const std::int64_t sharers = launch().tensor * launch().context * launch().pipeline;
    launch().micro_batch_size = micro.value_or(1);
    const std::int64_t per_copy = launch().micro_batch_size * rounds.value_or(1);
    if (given_.gpus) {
      launch().gpus = *given_.gpus;
    } else if (whole && micro) {
      launch().gpus = std::max<std::int64_t>(1, *whole / per_copy) * sharers;
      read_.notes.push_back(fmt::format(
          "{} GPUs follow from train_batch_size and the micro-batches (--gpus)", launch().gpus));
    } else {
      arguments_.error("train_batch_size", "the number of GPUs is not given", "--gpus 64");
    }
    if (launch().gpus % sharers != 0) {
      arguments_.error("pipeline.stages", fmt::format("{} GPUs are not divided by {}, which share "
                                                      "a sample or a pipeline",
                                                      launch().gpus, sharers));
      return;
    }
    launch().gpus_per_server = std::min<std::int64_t>(8, launch().gpus);
    const std::int64_t copies = launch().gpus / sharers;
    if (!micro && whole && *whole % (copies * rounds.value_or(1)) == 0)
      launch().micro_batch_size = *whole / copies / rounds.value_or(1);
    const std::int64_t at_once = launch().micro_batch_size * copies;
    launch().mini_batch_size = whole.value_or(at_once * rounds.value_or(1));
    const bool agree = launch().mini_batch_size % at_once == 0 &&
                       (!rounds || launch().mini_batch_size / at_once == *rounds);
    if (!agree)
      arguments_.error("train_batch_size",
                       fmt::format("train_batch_size is {}, but micro-batches of {} on {} copies "
                                   "make {} in {} steps",
                                   launch().mini_batch_size, launch().micro_batch_size, copies,
                                   at_once * rounds.value_or(1), rounds.value_or(1)));
  }

  void read_sharding() {
    const std::string at = "zero_optimization.";
    launch().set_zero(arguments_.count(at + "stage", 0, 3).value_or(0));
    read_mics(at + "mics_shard_size");
    // runtime/zero/config.py: 5e8 numbers where the file says nothing.
    const std::string bucket = arguments_.word(at + "reduce_bucket_size");
    const auto numbers =
        bucket == "auto" ? std::nullopt : arguments_.count(at + "reduce_bucket_size", 1);
    if (bucket == "auto")
      read_.notes.emplace_back("zero_optimization.reduce_bucket_size is 'auto': 5e8 is taken");
    const bool overlaps = arguments_.flag_or(at + "overlap_comm", launch().zero() == 3);
    if (launch().zero() >= 2 || overlaps)
      launch().bucket = Bytes{numbers.value_or(500'000'000) * (launch().dtype == "fp32" ? 4 : 2)};
    const std::string type = lower_case(arguments_.word("data_types.grad_accum_dtype"));
    launch().gradients = type == "fp32" && launch().dtype != "fp32" ? 2 : 1;
    arguments_.pass_over("communication_data_type");
  }

  /// MiCS: so many GPUs share, those of a sequence among them. Each backward reduces in its group,
  /// the last one also across the groups (runtime/zero/mics.py).
  void read_mics(const std::string& key) {
    const auto size = arguments_.count(key, -1, 1'000'000);
    if (!size || *size < 1) return;
    const std::int64_t copies =
        launch().gpus / (launch().tensor * launch().context * launch().pipeline);
    const std::int64_t degree = *size / launch().context;
    if (launch().zero() != 3 || *size % launch().context != 0 || degree <= 1) {
      read_.not_modelled.push_back(key);
    } else if (copies % degree != 0) {
      arguments_.error(key, fmt::format("{} is {}, which does not divide the {} GPUs that share a "
                                        "stage",
                                        key, *size, copies * launch().context));
    } else if (degree < copies) {
      launch().sharing.degree = static_cast<std::uint32_t>(degree);
      launch().sharing.reduction = Reduction::in_groups_each_backward;
    }
  }

  void read_recomputation() {
    if (arguments_.has("activation_checkpointing.number_checkpoints"))
      launch().recompute = "layers";
    if (launch().recompute == "none")
      read_.notes.emplace_back(
          "whether blocks are recomputed is in the program, not in its configuration: none is "
          "(schedule.recompute: layers)");
    arguments_.pass_over("activation_checkpointing.number_checkpoints");
    launch().balanced = launch().pipeline > 1;
  }

  LaunchArguments& arguments_;
  const LaunchGiven& given_;
  std::int64_t sequence_;
  ReadLaunch read_;
};

}  // namespace

Result<ReadLaunch> read_deepspeed(LaunchArguments arguments, Diagnostics& problems,
                                  const LaunchGiven& given, std::int64_t sequence) {
  ReadLaunch read = DeepspeedReader(arguments, given, sequence).read();
  if (!problems.empty()) return problems;
  return read;
}

}  // namespace plumbline
