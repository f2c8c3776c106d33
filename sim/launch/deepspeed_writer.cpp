// Names of keys as DeepSpeed's documentation of its configuration JSON has them.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/launch/launch_writers.h"

namespace plumbline {
namespace {

std::vector<std::string> deepspeed_notes(const ScenarioLaunch& made) {
  const Launch& launch = made.launch;
  std::vector<std::string> notes = made.notes;
  notes.push_back(
      fmt::format("deepspeed --num_nodes {} --num_gpus {} starts it; samples have {} "
                  "tokens, and the model is {}",
                  launch.gpus / launch.gpus_per_server, launch.gpus_per_server, launch.sequence,
                  launch.config));
  tell_unsaid(launch, "DeepSpeed", notes);
  tell_unsaid_sharing(launch, "DeepSpeed", /*has_degree=*/launch.zero() == 3, notes);
  if (launch.recompute == "layers")
    notes.emplace_back(
        "the program recomputes blocks by calling DeepSpeed's checkpointing: the key alone "
        "switches "
        "nothing on");
  if (launch.expert > 1)
    notes.push_back(fmt::format("the program puts experts on {} GPUs: no key does", launch.expert));
  if (launch.recompute == "selective")
    notes.emplace_back("the program recomputes what costs little: no key does");
  if (!launch.layout.empty())
    notes.push_back(fmt::format("the program cuts the stages: {}", launch.layout));
  if (launch.context > 1 && !launch.context_by_heads)
    notes.emplace_back("samples are shared by heads (Ulysses): model.context_exchange: heads");
  if (launch.fp8) notes.emplace_back("the program multiplies in fp8: no key does");
  if (steps_of(launch)) notes.push_back(fmt::format("{} updates in all", *steps_of(launch)));
  return notes;
}

}  // namespace

Result<EmittedLaunch> deepspeed_launch(const ScenarioLaunch& made) {
  const Launch& launch = made.launch;
  if (launch.pipeline > 1 && (launch.schedule != "1f1b" || launch.chunks > 1))
    return no_such_schedule("DeepSpeed", launch, "1f1b");
  if (launch.pipeline > 1 && launch.zero() > 1) {
    Diagnostic wrong;
    wrong.message = "DeepSpeed's pipelines share the optimizer's state, and no gradients";
    wrong.help = "training.zero_stage: 1";
    return wrong;
  }
  nlohmann::ordered_json json = {{"train_batch_size", launch.mini_batch_size},
                                 {"train_micro_batch_size_per_gpu", launch.micro_batch_size},
                                 {"gradient_accumulation_steps", rounds_of(launch)}};
  if (launch.dtype == "bf16") json["bf16"] = {{"enabled", true}};
  if (launch.dtype == "fp16") json["fp16"] = {{"enabled", true}};
  nlohmann::ordered_json zero = {{"stage", launch.zero()}};
  if (launch.zero() == 3 && launch.sharing.degree > 0)
    zero["mics_shard_size"] = launch.sharing.degree * launch.context;
  if (launch.bucket) {
    zero["overlap_comm"] = true;
    zero["reduce_bucket_size"] =
        std::max<std::int64_t>(1, launch.bucket->count / (launch.dtype == "fp32" ? 4 : 2));
  }
  json["zero_optimization"] = std::move(zero);
  if (launch.gradients > 1 && launch.dtype != "fp32")
    json["data_types"] = {{"grad_accum_dtype", "fp32"}};
  if (launch.tensor > 1) json["tensor_parallel"] = {{"autotp_size", launch.tensor}};
  if (launch.context > 1) json["sequence_parallel_size"] = launch.context;
  if (launch.pipeline > 1) json["pipeline"] = {{"stages", launch.pipeline}};
  if (launch.recompute == "layers")
    json["activation_checkpointing"] = {
        {"number_checkpoints", launch.recompute_layers.value_or(1)}};
  return EmittedLaunch{json.dump(2) + '\n', deepspeed_notes(made)};
}

}  // namespace plumbline
