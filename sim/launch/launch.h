// A training run as launchers are told of it, in terms that they share.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "schedules/stages/sharding.h"

namespace plumbline {

/// A launch: model, parallelism, batches, schedule, recomputation, precision, sharding.
struct Launch {
  // The model.
  std::string config;  ///< The path of its config.json; "" = `shape` is the text of one.
  std::string shape;   ///< A config.json made of the launcher's own arguments.
  std::int64_t sequence = 0;
  std::string dtype = "bf16";  ///< As model.dtype has it.
  bool fp8 = false;            ///< Linear layers multiply in fp8.
  bool mtp = false;            ///< Modules that predict further tokens are trained.
  std::string stack;  ///< The software, as cluster.device.stack has it; "" = the usual one.
  bool flash_attention = true;
  bool fused_loss = false;  ///< Cross entropy is one op.
  std::optional<double> attention_dropout, hidden_dropout;

  // The GPUs and what they share.
  std::int64_t gpus = 1;
  std::int64_t gpus_per_server = 8;
  std::int64_t tensor = 1;
  bool sequence_parallel = false;
  std::int64_t context = 1;
  bool context_by_heads = false;
  std::int64_t expert = 1;
  std::int64_t expert_tensor = 1;
  bool dispatch_per_server =
      false;  ///< Tokens go once to each server that has some of their experts.
  std::int64_t pipeline = 1;
  std::int64_t chunks = 1;  ///< Stages of each device.
  std::string layout;       ///< Megatron-LM's layout of the stages; "" = blocks evenly.
  bool balanced = false;  ///< Stages of about equal times, in the place of equal numbers of blocks.

  // The batches and their order.
  std::string schedule = "1f1b";      ///< As schedule.name has it.
  std::int64_t micro_batch_size = 1;  ///< Samples, of the GPUs that share a sample.
  std::int64_t mini_batch_size = 1;
  bool overlapped_pairs = false;       ///< schedule.pairs: overlapped.
  std::optional<std::int64_t> tokens;  ///< Of the whole training.

  // The memory.
  std::string recompute = "none";                ///< As schedule.recompute has it.
  std::optional<std::int64_t> recompute_layers;  ///< Of each stage; nothing: all.
  std::vector<std::string> recompute_modules;
  Sharing sharing{};  ///< training.zero_stage, and the keys that say how.
  bool gathers_with_forward = false;
  std::optional<Bytes> bucket;  ///< Gradients are reduced beside the backward, so many at once.
  double gradients = 2;         ///< Bytes of gradients for each byte of parameters.
  std::optional<double> optimizer_state;  ///< Nothing: that of Adam in fp32.

  /// training.zero_stage.
  std::int64_t zero() const { return static_cast<std::int64_t>(sharing.state); }
  void set_zero(std::int64_t stage) { sharing.state = static_cast<Sharded>(stage); }
  /// The GPUs of one device of a scenario: those that share a sample, or experts.
  std::int64_t group() const;
  /// The micro-batches that such a group trains at the same time.
  std::int64_t group_batches() const { return group() / (tensor * context); }

  friend bool operator==(const Launch&, const Launch&) = default;
};

/// A launch that was read, and what it leaves out.
struct ReadLaunch {
  Launch launch;
  std::vector<std::string> not_modelled;  ///< Arguments that might change time or memory.
  std::vector<std::string> no_effect;     ///< Arguments that change neither here.
  std::vector<std::string> notes;         ///< What was assumed.
};

}  // namespace plumbline
