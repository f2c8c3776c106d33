// Names of keys as torchtitan's config/job_config.py has them.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/yaml.h"
#include "models/architectures/huggingface.h"
#include "sim/launch/launch_writers.h"
#include "sim/launch/torchtitan_names.h"
#include "sim/launch/torchtitan_reader.h"

namespace plumbline {
namespace {

/// The stages of a layout, with all letters: "Et*2|tL" is Ett, tL.
std::vector<std::string> stages_of(const std::string& layout) {
  std::vector<std::string> stages(1);
  for (std::size_t at = 0; at < layout.size();) {
    const char letter = layout[at++];
    if (letter == '|') {
      stages.emplace_back();
      continue;
    }
    std::size_t count = 1;
    if (at < layout.size() && layout[at] == '*') {
      std::size_t end = at + 1;
      while (end < layout.size() && layout[end] >= '0' && layout[end] <= '9') ++end;
      count = std::stoul(layout.substr(at + 1, end - at - 1));
      at = end;
    }
    stages.back().append(count, letter);
  }
  return stages;
}

/// A stage's modules, from `layer` on, which is moved on.
std::vector<std::string> modules_of(const std::string& stage, std::int64_t& layer) {
  std::vector<std::string> modules;
  for (const char letter : stage) {
    if (letter == 'E') modules.emplace_back("\"tok_embeddings\"");
    if (letter == 't') modules.push_back(fmt::format("\"layers.{}\"", layer++));
    if (letter == 'L') modules.insert(modules.end(), {"\"norm\"", "\"output\""});
  }
  return modules;
}

class TorchtitanWriter {
 public:
  explicit TorchtitanWriter(const ScenarioLaunch& made)
      : made_(made), launch_(made.launch), notes_(made.notes) {}

  Result<EmittedLaunch> write() {
    const auto name = torchtitan_schedule(launch_.schedule);
    const bool is_found = launch_.schedule == "auto";
    if (launch_.pipeline > 1 && !name && !is_found)
      return no_such_schedule(
          "torchtitan", launch_,
          "gpipe, 1f1b, interleaved-1f1b, looped-bfs, interleaved-zb, zb-v, dualpipev or auto");
    const bool is_alone = launch_.tensor * launch_.context * launch_.pipeline == 1;
    if (launch_.zero() == 0 && !is_alone && copies_of(launch_) > 1) {
      Diagnostic wrong;
      wrong.message = "torchtitan has no copies beside other parallelism that share nothing";
      wrong.help = "training.zero_stage: 1, or 3";
      return wrong;
    }
    const auto source = read_file(launch_.config, kLargestYaml);
    if (!source) return source.problems();
    const auto shape = parse_huggingface(*source);
    if (!shape) return shape.problems();
    blocks_ = shape->blocks;
    add_model((*source)->text);
    add_training();
    add_parallelism();
    if (launch_.pipeline > 1) add_pipeline(name.value_or("PipelineScheduleMulti"), is_found);
    add_recomputation();
    tell_unsaid(launch_, "torchtitan", notes_);
    return EmittedLaunch{comments_of(notes_) + text_, {}};
  }

 private:
  void section(std::string_view name) {
    text_ += fmt::format("{}[{}]\n", text_.empty() ? "" : "\n", name);
  }
  template <class Value>
  void key(std::string_view name, const Value& value) {
    text_ += fmt::format("{} = {}\n", name, value);
  }
  void word(std::string_view name, std::string_view value) {
    key(name, fmt::format("\"{}\"", value));
  }

  void add_model(const std::string& config) {
    notes_.insert(notes_.begin(),
                  fmt::format("torchrun --nproc-per-node {} --nnodes {} -m torchtitan.train "
                              "--job.config_file THIS_FILE",
                              launch_.gpus_per_server, launch_.gpus / launch_.gpus_per_server));
    section("model");
    if (const TorchtitanModel* model = torchtitan_model_of(config)) {
      word("name", model->name);
      word("flavor", model->flavor);
      if (model->name == "qwen3" && launch_.pipeline > 1)
        notes_.emplace_back("torchtitan has no pipeline for qwen3 (pipelining_fn)");
    } else {
      notes_.push_back(fmt::format(
          "model.name and model.flavor are yours: no flavor has the sizes of {}", launch_.config));
    }
    if (launch_.fp8) key("converters", "[\"float8\"]");
  }

  void add_training() {
    section("training");
    key("seq_len", launch_.sequence);
    // The whole batch of a copy goes through a pipeline at once.
    key("local_batch_size",
        launch_.micro_batch_size * (launch_.pipeline > 1 ? rounds_of(launch_) : 1));
    key("global_batch_size", launch_.mini_batch_size);
    if (const auto steps = steps_of(launch_)) key("steps", *steps);
    if (launch_.dtype == "fp32") word("mixed_precision_param", "float32");
    if (launch_.dtype == "fp16") notes_.emplace_back("torchtitan computes in bf16, not in fp16");
    if (launch_.optimizer_state && *launch_.optimizer_state <= 2) word("dtype", "bfloat16");
  }

  /// Beside a pipeline no backward frees weights, and gradients are reduced behind the last one.
  /// Without a pipeline every backward frees weights and reduces gradients. Notes tell what differs
  /// from the scenario.
  void add_reshard() {
    const Sharing& sharing = launch_.sharing;
    const bool frees = launch_.zero() == 3 && sharing.frees_after_forward;
    word("fsdp_reshard_after_forward", frees ? "always" : "never");
    const bool is_pipelined = launch_.pipeline > 1;
    const auto differs = [&](bool is_other, std::string_view note) {
      if (is_other) notes_.push_back(fmt::format("other than predicted: {}", note));
    };
    differs(launch_.zero() < 3,
            "torchtitan shares weights between mini-batches, and the next forward gathers them");
    const bool keeps = launch_.zero() < 3 || !sharing.frees_after_backward;
    differs(keeps && !is_pipelined, "without a pipeline torchtitan frees weights in each backward");
    differs(!keeps && is_pipelined, "beside a pipeline torchtitan frees weights in no backward");
    const bool each = launch_.zero() >= 2 && sharing.reduction == Reduction::each_backward;
    const bool behind =
        launch_.zero() < 2 ? !launch_.bucket : sharing.reduction == Reduction::behind_last_backward;
    differs(!each && !is_pipelined, "without a pipeline torchtitan reduces in each backward");
    differs(!behind && is_pipelined,
            "beside a pipeline torchtitan reduces behind the last backward");
    differs(sharing.prefetch != 1, "torchtitan gathers weights one block ahead");
  }

  void add_parallelism() {
    section("parallelism");
    const bool is_sharded = launch_.zero() > 0;
    const std::int64_t copies = copies_of(launch_);
    const std::int64_t sharers = launch_.sharing.sharers(static_cast<std::uint32_t>(copies));
    key("data_parallel_replicate_degree", copies / sharers);
    key("data_parallel_shard_degree", sharers);
    if (is_sharded) add_reshard();
    if (launch_.context > 1 && launch_.zero() == 0)
      notes_.emplace_back("torchtitan shares parameters over context parallelism, too");
    key("tensor_parallel_degree", launch_.tensor);
    if (launch_.tensor > 1 && !launch_.sequence_parallel)
      notes_.emplace_back("torchtitan's tensor parallelism is always sequence parallel");
    if (launch_.context > 1) key("context_parallel_degree", launch_.context);
    if (launch_.context > 1 && launch_.context_by_heads)
      notes_.emplace_back("torchtitan exchanges keys and values, not heads");
    if (launch_.expert > 1) {
      key("expert_parallel_degree", launch_.expert);
      key("expert_tensor_parallel_degree", launch_.expert_tensor);
      if (launch_.dispatch_per_server) word("expert_parallel_comm_backend", "deepep");
    }
    key("pipeline_parallel_degree", launch_.pipeline);
  }

  void add_pipeline(std::string_view schedule, bool is_found) {
    word("pipeline_parallel_schedule",
         is_found && launch_.chunks == 1 ? "PipelineScheduleSingle" : schedule);
    if (is_found) {
      word("pipeline_parallel_schedule_csv",
           made_.order_file.empty() ? "order.csv" : made_.order_file);
      if (made_.order_file.empty())
        notes_.emplace_back("plumbline order, with -o order.csv, writes order.csv");
    }
    key("pipeline_parallel_microbatch_size", launch_.micro_batch_size);
    if (launch_.schedule == "dualpipev" && launch_.expert > 1)
      key("pipeline_parallel_expert_parallel_overlap", launch_.overlapped_pairs);
    const std::int64_t stages = launch_.pipeline * launch_.chunks;
    const std::vector<std::string> own = own_stages(stages);
    const std::string usual = torchtitan_layout(blocks_, stages, 1, 1);
    const bool is_single = launch_.schedule == "1f1b" || launch_.schedule == "gpipe";
    if (own == stages_of(usual) && launch_.chunks == (is_single ? 1 : 2)) return;
    text_ += "module_fqns_per_model_part = [\n";
    std::int64_t layer = 0;
    for (const std::string& stage : own)
      text_ += fmt::format("  [{}],\n", fmt::join(modules_of(stage, layer), ", "));
    text_ += "]\n";
  }

  /// Without a layout all stages have as many blocks, embedding and head on top.
  std::vector<std::string> own_stages(std::int64_t stages) const {
    if (!launch_.layout.empty()) return stages_of(launch_.layout);
    std::vector<std::string> own(static_cast<std::size_t>(stages),
                                 std::string(static_cast<std::size_t>(blocks_ / stages), 't'));
    own.front().insert(0, "E");
    own.back() += 'L';
    return own;
  }

  void add_recomputation() {
    section("activation_checkpoint");
    if (launch_.recompute == "none") return word("mode", "none");
    if (launch_.recompute == "selective") {
      word("mode", "selective");
      word("selective_ac_option", "op");
      notes_.emplace_back(
          "op of torchtitan recomputes every second product of each block, too, which is not what "
          "was predicted");
      return;
    }
    const std::int64_t of_stage =
        std::max<std::int64_t>(1, blocks_ / (launch_.pipeline * launch_.chunks));
    const std::int64_t recomputed = launch_.recompute_layers.value_or(of_stage);
    const std::int64_t every =
        std::max<std::int64_t>(1, of_stage / std::max<std::int64_t>(1, recomputed));
    if (every == 1) return word("mode", "full");
    word("mode", "selective");
    word("selective_ac_option", std::to_string(every));
    if (of_stage != every * recomputed)
      notes_.push_back(
          fmt::format("torchtitan recomputes every {}th block, which are not exactly "
                      "{} of {} in a stage",
                      every, recomputed, of_stage));
  }

  const ScenarioLaunch& made_;
  const Launch& launch_;
  std::vector<std::string> notes_;
  std::string text_;
  std::int64_t blocks_ = 0;
};

}  // namespace

Result<EmittedLaunch> torchtitan_launch(const ScenarioLaunch& made) {
  return TorchtitanWriter(made).write();
}

}  // namespace plumbline
