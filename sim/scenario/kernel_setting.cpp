// The parts of the setting, each from another section.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/kernel_setting.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"
#include "sim/scenario/placement.h"

namespace plumbline {
namespace {

bool has_ops(const Profile& profile) {
  const std::vector<LayerCosts>& layers = profile.measurements.front().layers;
  return std::any_of(layers.begin(), layers.end(),
                     [](const LayerCosts& layer) { return !layer.timed && layer.ops; });
}

void note_unused(std::string_view key, std::string_view reason, Scenario& scenario) {
  scenario.notes.push_back(fmt::format("cluster.device.{} changes nothing: {}", key, reason));
}

/// The devices of the run: those of the cluster, else those that the plan needs.
std::int64_t devices_of_run(const Scenario& scenario) {
  if (scenario.cluster_given) return scenario.cluster.device_count();
  return scenario.copies *
         std::max<std::int64_t>(1, stage_count(scenario) / scenario.schedule.chunks);
}

double rate(const std::optional<BytesPerSecond>& bandwidth) {
  return bandwidth ? static_cast<double>(bandwidth->count) : 0;
}

/// Weights that copies share travel with each micro-batch: in stage 3, unless they stay for the
/// mini-batch, and in stage 2 without a pipeline, where each backward scatters its gradients.
/// Copies of a stage are neighbours in the cluster.
SharedWeights shared_weights(const Scenario& scenario) {
  const Sharing& sharing = scenario.sharing;
  SharedWeights weights;
  if (sharing.gathers_passes()) {
    weights.forward = sharing.frees_after_backward ? 1 : 0;
    weights.backward = sharing.frees_after_forward ? 1 : 0;
    if (sharing.reduces_each_backward()) ++weights.backward;
  } else if (sharing.reduces_each_backward() && stage_count(scenario) == 1) {
    weights.forward = weights.backward = 1;
  } else {
    return {};
  }
  const std::vector<Level>& levels = scenario.cluster.levels;
  const auto in_server = static_cast<std::int64_t>(levels.front().size);
  const std::int64_t copies = sharing.degree > 0 ? sharing.degree : scenario.copies;
  weights.copies = copies;
  weights.near = std::min(in_server, copies);
  weights.link = rate(levels.front().link.bandwidth);
  // The slowest level that the ring crosses decides: of the devices below it each has a card, or
  // they share one.
  std::int64_t below = in_server;
  for (auto level = levels.begin() + 1; level != levels.end() && below < copies; ++level) {
    const double card = rate(level->link.bandwidth);
    const double cards = level->own_cards ? card * static_cast<double>(below) : card;
    if (cards > 0 && (weights.network == 0 || cards < weights.network)) weights.network = cards;
    below *= static_cast<std::int64_t>(level->size);
  }
  return weights;
}

}  // namespace

std::optional<KernelSetting> kernel_setting(Scenario& scenario, const DeviceChoice& device,
                                            const DeviceRoofline& roofline) {
  const bool can_run = has_ops(scenario.model->profile);
  if (device.efficiency || !can_run) {
    const std::string_view reason =
        can_run ? "with an efficiency, times follow from a roofline"
                : "no layer lists its ops, as those of a model.huggingface do";
    if (device.stack) note_unused("stack", reason, scenario);
    if (device.kernels) note_unused("kernels", reason, scenario);
    return std::nullopt;
  }
  if (auto note = other_device_note(device)) scenario.notes.push_back(*std::move(note));
  KernelSetting setting{kernels_of(device, roofline), device.kernels_file, {}, {}, 1};
  setting.overlap = {.on = scenario.schedule.bucket.has_value(),
                     .has_chunks = scenario.schedule.chunks > 1,
                     .link = device.link_overlap,
                     .network = device.network_overlap};
  setting.weights = shared_weights(scenario);
  setting.devices = devices_of_run(scenario) * scenario.model->profile.group.devices;
  setting.recomputes_blocks = scenario.schedule.recompute.kind == Recompute::layers;
  return setting;
}

Duration wait_between_ops(const Scenario& scenario, const SoftwareStack& stack) {
  return stage_count(scenario) == 1 ? Duration{} : round_up(stack.gap_per_op_s * 1e9);
}

}  // namespace plumbline
