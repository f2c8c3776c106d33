// The words of other tools by hand, our own from the tables.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/synonyms.h"

#include "sim/scenario/scenario_format.h"

namespace plumbline {

const std::vector<std::pair<std::string, std::string>>& words_elsewhere() {
  static const std::vector<std::pair<std::string, std::string>> words = [] {
    std::vector<std::pair<std::string, std::string>> all = {
        {"tp", "model.tensor_parallel"},
        {"tensor_model_parallel_size", "model.tensor_parallel"},
        {"tensor_parallel_size", "model.tensor_parallel"},
        {"cp", "model.context_parallel"},
        {"context_parallel_size", "model.context_parallel"},
        {"ep", "model.expert_parallel"},
        {"expert_model_parallel_size", "model.expert_parallel"},
        {"etp", "model.expert_tensor_parallel"},
        {"expert_tensor_parallel_size", "model.expert_tensor_parallel"},
        {"pp", "plan.stages"},
        {"pipeline_parallel", "plan.stages"},
        {"pipeline_model_parallel_size", "plan.stages"},
        {"dp", "plan.data_parallel"},
        {"data_parallel_size", "plan.data_parallel"},
        {"global_batch_size", "training.mini_batch_size"},
        {"train_batch_size", "training.mini_batch_size"},
        {"train_micro_batch_size_per_gpu", "training.micro_batch_size"},
        {"zero", "training.zero_stage"},
        {"zero_optimization", "training.zero_stage"},
        {"gradient_accumulation_steps", "schedule.micro_batches"},
        {"num_microbatches", "schedule.micro_batches"},
        {"seq_length", "model.sequence"},
        {"attn_pdrop", "model.attention_dropout"},
        {"resid_pdrop", "model.hidden_dropout"},
        {"embd_pdrop", "model.hidden_dropout"},
        {"activation_checkpointing", "schedule.recompute"}};
    for (const KeyFormat& key : scenario_format().keys) {
      for (const ValueFormat& value : key.values) {
        if (value.type != ValueFormat::Type::section) continue;
        for (const KeyFormat& inner : value.section().keys)
          all.emplace_back(inner.name, std::string(key.name) + "." + std::string(inner.name));
      }
    }
    return all;
  }();
  return words;
}

}  // namespace plumbline
