// From a resolved scenario back to the terms of launchers.
//
// SPDX-License-Identifier: MIT
#include "sim/launch/launch_of.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/profile/estimate.h"
#include "models/profile/model_checks.h"

namespace plumbline {
namespace {

/// E, t, m or L, as in Megatron-LM's layouts; nothing for a part of a block.
std::optional<char> letter_of(const Layer& layer) {
  if (layer.kind == "embedding") return 'E';
  if (layer.kind == "head") return 'L';
  if (layer.kind == "mtp") return 'm';
  if (layer.kind.ends_with("block")) return 't';
  return std::nullopt;
}

/// "Et*3" of "Ettt".
std::string shortened(const std::string& letters) {
  std::string text;
  for (std::size_t at = 0; at < letters.size();) {
    std::size_t end = at;
    while (end < letters.size() && letters[end] == letters[at]) ++end;
    text += letters[at];
    if (end - at > 1) text += fmt::format("*{}", end - at);
    at = end;
  }
  return text;
}

class LaunchMaker {
 public:
  LaunchMaker(const Scenario& scenario, const TrainingSetup& setup)
      : scenario_(scenario), setup_(setup) {}

  Result<ScenarioLaunch> make() {
    if (!scenario_.transformer)
      return input_error(scenario_.model_mark,
                         "a launcher is told of a model by its config.json, and this one has none",
                         "model.huggingface: config.json");
    set_model();
    if (auto wrong = check_devices()) return *std::move(wrong);
    set_gpus();
    if (auto wrong = set_stages()) return *std::move(wrong);
    set_recomputation();
    set_memory();
    return std::move(made_);
  }

 private:
  Launch& launch() { return made_.launch; }
  void note(std::string text) { made_.notes.push_back(std::move(text)); }

  void set_model() {
    const TransformerOptions& options = *scenario_.transformer;
    launch().config = scenario_.config;
    launch().sequence = options.sequence;
    if (scenario_.lengths) {
      launch().sequence = std::llround(scenario_.lengths->longest());
      note("training.micro_batch_lengths is left out: launchers take one length, here the longest");
    }
    launch().dtype = name_of(options.dtype);
    launch().fp8 = options.fp8_linear;
    launch().mtp = options.mtp;
    launch().flash_attention = options.flash_attention;
    launch().fused_loss = options.fused_loss.value_or(false);
    launch().attention_dropout =
        options.attention_dropout ? options.attention_dropout : options.dropout;
    launch().hidden_dropout = options.hidden_dropout ? options.hidden_dropout : options.dropout;
    launch().tensor = options.tensor_parallel;
    launch().sequence_parallel = options.sequence_parallel;
    launch().context = options.context_parallel;
    launch().context_by_heads =
        options.context_parallel > 1 && options.context_exchange == ContextExchange::heads;
    launch().expert = options.expert_parallel;
    launch().expert_tensor = options.expert_parallel > 1 ? options.expert_tensor_parallel : 1;
    launch().dispatch_per_server =
        options.expert_parallel > 1 && options.dispatch != dispatch_of(kDispatches[0]);
  }

  /// Launchers number ranks along the pipeline, and know one kind of device.
  std::optional<Diagnostic> check_devices() const {
    if (setup_.cluster.runs.empty() && scenario_.plan.device_order.empty()) return std::nullopt;
    return input_error(
        scenario_.cluster_mark,
        "a launcher numbers its ranks along the pipeline, on devices that are alike, "
        "and these are not",
        "cluster.devices: 8, without plan.devices: auto; then give the launcher its "
        "hosts in the order of the pipeline");
  }

  void set_gpus() {
    const std::int64_t group = setup_.group_devices();
    const std::vector<Level>& levels = setup_.cluster.levels;
    launch().gpus = setup_.cluster.device_count() * group;
    launch().gpus_per_server = scenario_.model->profile.group.devices_per_server.value_or(
        levels.size() > 1 ? levels.front().size * group : launch().gpus);
    launch().micro_batch_size = setup_.micro_batch_size / launch().group_batches();
    launch().mini_batch_size = setup_.micro_batch_size * setup_.micro_batches * setup_.copies();
    launch().tokens = setup_.rates.tokens;
    if (setup_.devices_without_stage() > 0)
      note(fmt::format("{} of the scenario's devices hold no stage, and no launcher leaves any out",
                       setup_.devices_without_stage()));
  }

  std::optional<Diagnostic> set_stages() {
    launch().schedule = setup_.whole_model() || !setup_.rule ? "1f1b" : setup_.rule->name;
    launch().overlapped_pairs = scenario_.schedule.overlaps_pairs;
    const std::vector<Stage>& stages = setup_.partition.stages;
    const std::size_t positions = setup_.schedule.shape.slots;
    launch().pipeline = static_cast<std::int64_t>(positions);
    if (stages.size() % positions != 0)
      return input_error(scenario_.plan_mark,
                         fmt::format("{} stages on {} devices in a row are no layout of a launcher",
                                     stages.size(), positions));
    launch().chunks = static_cast<std::int64_t>(stages.size() / positions);
    std::vector<std::string> letters;
    for (const Stage& stage : stages) {
      std::string& own = letters.emplace_back();
      for (const LayerId id : stage.layers) {
        const auto letter = letter_of(scenario_.model->graph.layer(id));
        if (!letter)
          return input_error(scenario_.model_mark,
                             fmt::format("layer '{}' is a part of a block, and launchers place "
                                         "whole blocks",
                                         clipped(scenario_.model->graph.layer(id).name)),
                             "model.split_blocks: false");
        own += *letter;
      }
    }
    set_layout(letters);
    return std::nullopt;
  }

  /// No layout where all stages have as many blocks, the embedding and the head on top.
  void set_layout(const std::vector<std::string>& letters) {
    const auto blocks = [](const std::string& stage) {
      return std::count(stage.begin(), stage.end(), 't');
    };
    const bool even = std::all_of(letters.begin(), letters.end(), [&](const std::string& stage) {
      return blocks(stage) == blocks(letters.front());
    });
    if (even || letters.size() == 1) return;
    for (const std::string& stage : letters)
      launch().layout += (launch().layout.empty() ? "" : "|") + shortened(stage);
  }

  void set_recomputation() {
    const RecomputeChoice& choice = scenario_.schedule.recompute;
    launch().recompute = name(choice.kind);
    if (choice.kind == Recompute::none) return;
    if (choice.kind == Recompute::full) {
      launch().recompute = "layers";
      note("each block is recomputed by itself: launchers do not recompute a stage as a whole");
      if (choice.early)
        note(
            "schedule.recompute_early is left out: launchers recompute when the gradient is there");
    }
    if (choice.kind == Recompute::selective) {
      if (choice.modules) {
        for (const std::string_view module : names_of(*choice.modules))
          launch().recompute_modules.emplace_back(module);
      } else {
        note(
            "selective recomputation of what costs little has no module of its own everywhere: "
            "schedule.recompute_modules says which");
      }
    }
    const std::vector<std::uint32_t>& numbers = setup_.recomputed;
    if (numbers.empty()) return;
    const std::uint32_t most = *std::max_element(numbers.begin(), numbers.end());
    if (most == 0) {
      launch().recompute = "none";
      launch().recompute_modules.clear();
      return;
    }
    launch().recompute_layers = most;
    if (*std::min_element(numbers.begin(), numbers.end()) != most)
      note(
          fmt::format("stages recompute different numbers of blocks, and launchers take one: the "
                      "largest, {}",
                      most));
  }

  void set_memory() {
    if (scenario_.schedule.offload)
      note(
          "activations in the hosts' memory (schedule.offload) are not written: no launcher here "
          "takes a share");
    launch().sharing = setup_.rules.sharing;
    launch().gathers_with_forward = scenario_.gather_ahead;
    // Where the scenario gives no size, only data-parallel has one that a launcher must be told.
    launch().bucket = setup_.whole_model() ? scenario_.min_bucket() : scenario_.schedule.bucket;
    launch().gradients = scenario_.gradient_width;
    const double usual = usual_adam(scenario_.transformer->dtype).state;
    if (scenario_.optimizer_state != usual) launch().optimizer_state = scenario_.optimizer_state;
  }

  const Scenario& scenario_;
  const TrainingSetup& setup_;
  ScenarioLaunch made_;
};

}  // namespace

Result<ScenarioLaunch> launch_of(const Scenario& scenario, const TrainingSetup& setup) {
  return LaunchMaker(scenario, setup).make();
}

}  // namespace plumbline
