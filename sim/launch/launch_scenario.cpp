// Keys of a scenario, in the order in which people write them.
//
// SPDX-License-Identifier: MIT
#include "sim/launch/launch_scenario.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/exact_quantity.h"
#include "base/yaml_text.h"
#include "sim/scenario/sharing_keys.h"

namespace plumbline {
namespace {

/// "# text", in lines of an ordinary page.
void add_comment(std::string& text, const std::string& comment) {
  constexpr std::size_t width = 116;
  std::string line;
  for (std::size_t at = 0; at < comment.size();) {
    const std::size_t end = std::min(comment.find(' ', at), comment.size());
    const std::string word = comment.substr(at, end - at);
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      text += "# " + line + '\n';
      line = "  ";
    }
    line += (line.empty() || line == "  " ? "" : " ") + word;
    at = end + 1;
  }
  text += "# " + line + '\n';
}

/// A section in flow style on lines of its own.
void add_section(std::string& text, std::string_view key, FlowMap map) {
  add_lines(text, fmt::format("{}: ", key), std::move(map).pieces());
}

/// "160 MB": sizes that people write in powers of 1000.
std::string size_text(Bytes size) {
  constexpr std::int64_t mega = 1'000'000;
  return size.count % mega == 0 ? fmt::format("{} MB", size.count / mega) : exact_text(size);
}

void add_model(std::string& text, const Launch& launch, const LaunchSetting& setting) {
  FlowMap model;
  model.add("huggingface", yaml_scalar(setting.config));
  model.add("sequence", std::to_string(launch.sequence));
  if (launch.dtype != "bf16") model.add("dtype", launch.dtype);
  const auto add_above_one = [&](std::string_view key, std::int64_t value) {
    if (value > 1) model.add(key, std::to_string(value));
  };
  add_above_one("tensor_parallel", launch.tensor);
  if (launch.sequence_parallel && launch.tensor > 1) model.add("sequence_parallel", "true");
  add_above_one("context_parallel", launch.context);
  if (launch.context > 1 && launch.context_by_heads) model.add("context_exchange", "heads");
  add_above_one("expert_parallel", launch.expert);
  if (launch.expert > 1) add_above_one("expert_tensor_parallel", launch.expert_tensor);
  if (launch.expert > 1 && launch.dispatch_per_server) model.add("dispatch", "per-server");
  if (!launch.flash_attention) model.add("flash_attention", "false");
  if (launch.fp8) model.add("fp8_linear", "true");
  if (launch.fused_loss) model.add("cross_entropy", "fused");
  if (launch.mtp) model.add("mtp", "true");
  if (launch.attention_dropout)
    model.add("attention_dropout", fmt::format("{}", *launch.attention_dropout));
  if (launch.hidden_dropout) model.add("hidden_dropout", fmt::format("{}", *launch.hidden_dropout));
  add_section(text, "model", std::move(model));
}

void add_schedule(std::string& text, const Launch& launch) {
  FlowMap schedule;
  schedule.add("name", launch.schedule);
  if (launch.chunks > 1) schedule.add("chunks", std::to_string(launch.chunks));
  if (launch.overlapped_pairs) schedule.add("pairs", "overlapped");
  if (launch.recompute != "none") {
    schedule.add("recompute", launch.recompute);
    if (launch.recompute_layers)
      schedule.add("recompute_layers", std::to_string(*launch.recompute_layers));
    if (!launch.recompute_modules.empty())
      schedule.add("recompute_modules",
                   flow_list({launch.recompute_modules.begin(), launch.recompute_modules.end()}));
  }
  if (launch.bucket) schedule.add("bucket", size_text(*launch.bucket));
  add_section(text, "schedule", std::move(schedule));
}

void add_training(std::string& text, const Launch& launch) {
  FlowMap training;
  training.add("mini_batch_size", std::to_string(launch.mini_batch_size));
  training.add("micro_batch_size",
               std::to_string(launch.micro_batch_size * launch.group_batches()));
  training.add("gradients", fmt::format("{}", launch.gradients));
  if (launch.optimizer_state)
    training.add("optimizer_state", fmt::format("{}", *launch.optimizer_state));
  if (launch.zero() > 0) {
    training.add("zero_stage", std::to_string(launch.zero()));
    for (auto& [key, value] : sharing_keys_of(launch.sharing)) training.add(key, std::move(value));
  }
  if (launch.gathers_with_forward && (launch.zero() == 1 || launch.zero() == 2))
    training.add("gather", "with-forward");
  if (launch.tokens) training.add("tokens", std::to_string(*launch.tokens));
  add_section(text, "training", std::move(training));
}

}  // namespace

std::int64_t Launch::group() const {
  const std::int64_t experts = expert > 1 ? expert * expert_tensor : 1;
  return std::max(experts, tensor * context);
}

std::string scenario_text(const ReadLaunch& read, const LaunchSetting& setting) {
  const Launch& launch = read.launch;
  std::string text;
  add_comment(text, setting.from);
  if (!read.not_modelled.empty())
    add_comment(text, fmt::format("Not modelled: {}", fmt::join(read.not_modelled, ", ")));
  if (!read.no_effect.empty())
    add_comment(text, fmt::format("Left out, as they change neither time nor memory here: {}",
                                  fmt::join(read.no_effect, ", ")));
  for (const std::string& note : read.notes) add_comment(text, "Note: " + note);
  text += "version: 1\n";
  text += fmt::format("name: {}\n", yaml_scalar(setting.name));
  add_model(text, launch, setting);
  FlowMap cluster;
  cluster.add("gpus", std::to_string(launch.gpus));
  cluster.add("gpus_per_server", std::to_string(launch.gpus_per_server));
  FlowMap device;
  device.add("preset", setting.device);
  device.add("network", setting.network);
  if (!launch.stack.empty()) device.add("stack", launch.stack);
  cluster.add("device", std::move(device).pieces());
  add_section(text, "cluster", std::move(cluster));
  FlowMap plan;
  plan.add("stages", std::to_string(launch.pipeline * launch.chunks));
  if (!launch.layout.empty()) {
    plan.add("partition", fmt::format("\"{}\"", launch.layout));
  } else if (launch.pipeline > 1) {
    plan.add("partition", launch.balanced ? "balanced" : "blocks");
  }
  plan.add("data_parallel", "fill");
  add_section(text, "plan", std::move(plan));
  add_schedule(text, launch);
  add_training(text, launch);
  return text;
}

}  // namespace plumbline
