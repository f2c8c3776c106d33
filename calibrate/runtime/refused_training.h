// The settings of a scenario's training that no run for real, or no network, is executed with.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <optional>

#include "base/diagnostic.h"
#include "sim/scenario/scenario.h"

namespace plumbline {

/// The reason why a scenario is not run for real, with any backend: real devices flush.
inline std::optional<Diagnostic> check_flush(const Scenario& scenario) {
  if (scenario.flushes) return std::nullopt;
  return input_error(scenario.flush_mark,
                     "training.flush is none, and a real run flushes: all its devices end a "
                     "mini-batch before any begins the next",
                     "training.flush: all");
}

/// The reason why real devices do not run a scenario with any kernels, if there is one. Real
/// devices hold gradients and weights whole, gather weights after the update, and run one op after
/// the other.
inline std::optional<Diagnostic> check_for_devices(const Scenario& scenario) {
  if (scenario.sharing.state >= Sharded::gradients) {
    return input_error(scenario.sharded_mark,
                       fmt::format("training.zero_stage is {}, and a run with real kernels shares "
                                   "no more than the optimizer",
                                   static_cast<int>(scenario.sharing.state)),
                       "training.zero_stage: 1 or 0; --backend synthetic runs any");
  }
  if (scenario.sharing.degree > 0) {
    return input_error(
        scenario.degree_mark,
        fmt::format("training.shard_degree is {}, and in a run with real kernels all "
                    "copies share",
                    scenario.sharing.degree),
        "leave training.shard_degree out; --backend synthetic runs any");
  }
  if (scenario.gather_ahead) {
    return input_error(scenario.gather_mark,
                       "training.gather is with-forward, and a run with real kernels gathers "
                       "weights behind the update",
                       "training.gather: behind-update; --backend synthetic runs both");
  }
  if (!scenario.unlike.empty()) {
    return input_error(scenario.cluster_mark,
                       "cluster.devices lists several kinds of devices, and those of a run with "
                       "real kernels are all of one kind",
                       "cluster.devices: 4; --backend synthetic runs any");
  }
  for (const Layer& layer : scenario.model->graph.layers()) {
    if (layer.tied_to.empty()) continue;
    return input_error(scenario.model_mark,
                       fmt::format("layer '{}' is tied to '{}', and a run with real kernels gives "
                                   "each layer a table of its own",
                                   clipped(layer.name), clipped(layer.tied_to)),
                       "leave `tied` out; --backend synthetic runs any");
  }
  if (scenario.lengths) {
    return input_error(scenario.lengths->mark,
                       "training.micro_batch_lengths is given, and a run with real kernels has "
                       "micro-batches of one length",
                       "leave it out; --backend synthetic runs any");
  }
  if (scenario.schedule.overlaps_pairs) {
    return input_error(scenario.schedule.pairs_mark,
                       "schedule.pairs is overlapped, and a device runs one op after the other",
                       "schedule.pairs: apart; --backend synthetic runs both");
  }
  return std::nullopt;
}

/// The reason why a scenario is not run with real kernels, if there is one. Real kernels add up
/// gradients in the network's element type and run whole sequences. A layer recomputes all of its
/// activations or none.
inline std::optional<Diagnostic> check_training(const Scenario& scenario) {
  if (scenario.gradient_width != 1) {
    return input_error(scenario.gradient_mark,
                       fmt::format("training.gradients is {}, and a network is run with gradients "
                                   "as wide as its parameters",
                                   scenario.gradient_width),
                       "training.gradients: 1; --backend synthetic runs any");
  }
  if (scenario.schedule.recompute.kind == Recompute::selective) {
    return input_error(scenario.schedule.recompute.mark,
                       "schedule.recompute is 'selective', and a network is run with all of a "
                       "layer's activations recomputed, or none",
                       "schedule.recompute: layers, full or none; --backend synthetic runs any");
  }
  if (const auto& offload = scenario.schedule.offload; offload && offload->value > 0) {
    return input_error(offload->mark,
                       fmt::format("schedule.offload is {:g}, and a network is run with all of its "
                                   "activations on the devices",
                                   offload->value),
                       "schedule.offload: 0; --backend synthetic runs any");
  }
  if (scenario.schedule.slices.count > 1) {
    return input_error(scenario.schedule.slices.mark,
                       fmt::format("schedule.slices is {}, and a network is run with whole "
                                   "sequences",
                                   scenario.schedule.slices.count),
                       "schedule.slices: 1; --backend synthetic runs any");
  }
  return check_for_devices(scenario);
}

}  // namespace plumbline
