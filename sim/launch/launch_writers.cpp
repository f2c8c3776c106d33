// The launchers by their names, and what their writers share.
//
// SPDX-License-Identifier: MIT
#include "sim/launch/launch_writers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/bug.h"
#include "sim/launch/megatron_writer.h"
#include "sim/scenario/sharing_keys.h"

namespace plumbline {
namespace {

Result<EmittedLaunch> megatron_launch(const ScenarioLaunch& made) {
  auto text = megatron_text(made);
  if (!text) return text.problems();
  return EmittedLaunch{*std::move(text), {}};
}

struct Launcher {
  std::string_view name;
  Result<EmittedLaunch> (*write)(const ScenarioLaunch& made);
};

constexpr std::array<Launcher, 5> kLaunchers = {{{"megatron", megatron_launch},
                                                 {"nemo", nemo_launch},
                                                 {"torchtitan", torchtitan_launch},
                                                 {"nanotron", nanotron_launch},
                                                 {"deepspeed", deepspeed_launch}}};

}  // namespace

std::vector<std::string> launcher_names() {
  std::vector<std::string> names;
  names.reserve(kLaunchers.size());
  for (const Launcher& launcher : kLaunchers) names.emplace_back(launcher.name);
  return names;
}

Result<EmittedLaunch> emitted_launch(std::string_view launcher, const ScenarioLaunch& made) {
  const auto found = std::find_if(kLaunchers.begin(), kLaunchers.end(),
                                  [&](const Launcher& one) { return one.name == launcher; });
  PLUMBLINE_CHECK(found != kLaunchers.end(), launcher);
  return found->write(made);
}

Diagnostic no_such_schedule(std::string_view launcher, const Launch& launch, std::string has) {
  Diagnostic wrong;
  wrong.message = fmt::format("{} has no schedule '{}'", launcher, launch.schedule);
  wrong.help = "schedule.name: " + std::move(has);
  return wrong;
}

void tell_unsaid(const Launch& launch, std::string_view launcher, std::vector<std::string>& notes) {
  const auto tell = [&](bool is_used, std::string_view what) {
    if (is_used) notes.push_back(fmt::format("{} has no key for {}", launcher, what));
  };
  tell(launch.attention_dropout.value_or(0) > 0 || launch.hidden_dropout.value_or(0) > 0,
       "dropout");
  tell(launch.fused_loss, "cross entropy as one op");
  tell(!launch.flash_attention, "attention without FlashAttention");
  tell(launch.overlapped_pairs && launcher != "torchtitan", "overlapping pairs of F and B");
  tell(launch.mtp, "modules that predict further tokens");
  tell(launch.zero() > 0 && launch.gathers_with_forward && launcher == "nanotron",
       "gathering parameters beside the forward");
}

std::optional<std::int64_t> instances_of(const Launch& launch, std::vector<std::string>& notes) {
  if (launch.sharing.degree == 0) return std::nullopt;
  if (launch.expert > 1)
    notes.emplace_back(
        "instances of experts are groups of their own: training.shard_degree is that of the rest");
  return copies_of(launch) / launch.sharing.degree;
}

void tell_unsaid_sharing(const Launch& launch, std::string_view launcher, bool has_degree,
                         std::vector<std::string>& notes) {
  for (const auto& [key, value] : sharing_keys_of(launch.sharing)) {
    if (key == "shard_degree" && has_degree) continue;
    if (launcher == "DeepSpeed" && value == "in-groups-each-backward") continue;  // MiCS
    notes.push_back(fmt::format("{} has no key for training.{}: {}", launcher, key, value));
  }
}

std::string comments_of(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += fmt::format("# {}\n", note);
  return text;
}

std::int64_t copies_of(const Launch& launch) {
  return launch.gpus / (launch.tensor * launch.context * launch.pipeline);
}

std::int64_t rounds_of(const Launch& launch) {
  return launch.mini_batch_size / (launch.micro_batch_size * copies_of(launch));
}

std::optional<std::int64_t> steps_of(const Launch& launch) {
  if (!launch.tokens) return std::nullopt;
  return std::max<std::int64_t>(1, *launch.tokens / (launch.mini_batch_size * launch.sequence));
}

}  // namespace plumbline
