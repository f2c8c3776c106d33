// Halves of measured times.
//
// SPDX-License-Identifier: MIT
#include "sim/setup/split_backward.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace plumbline {
namespace {

bool runs_weight_parts(const Schedule& schedule) {
  const std::vector<Op>& order = schedule.issue_order;
  return std::any_of(order.begin(), order.end(),
                     [](const Op& op) { return op.kind == OpKind::backward_weight; });
}

bool knows_parameters(const TrainingSetup& setup) {
  const std::vector<Layer>& layers = setup.model->graph.layers();
  return setup.network || std::any_of(layers.begin(), layers.end(), [](const Layer& layer) {
           return layer.parameters.count > 0;
         });
}

/// Every second nanosecond of a time.
MeasuredTime half(MeasuredTime time) {
  time.mean /= 2;
  for (std::optional<Duration>* part : {&time.median, &time.q1, &time.q3}) {
    if (*part) **part /= 2;
  }
  return time;
}

void halve(LayerCosts& layer) {
  const MeasuredTime weight = half(layer.backward);
  MeasuredTime input = weight;
  input.mean = layer.backward.mean - weight.mean;
  layer.split = SplitBackward{input, weight};
  layer.sent.backward_input = layer.sent.backward;
  layer.sent.backward_weight = layer.sent.backward;
}

std::string layers_that(std::uint32_t count, std::string_view one, std::string_view several) {
  return fmt::format("{} layer{} {}", count, count == 1 ? "" : "s", count == 1 ? one : several);
}

}  // namespace

std::string AssumedSplit::note() const {
  if (halved == 0 && without_weights == 0) return "";
  if (halved == 0) {
    return layers_that(without_weights, "without parameters gives its backward as one time",
                       "without parameters give their backward as one time") +
           ": all of it is I, and W takes no time";
  }
  std::string text =
      layers_that(halved, "gives its backward as one time", "give their backward as one time") +
      ": half of it is taken as I (backward_input), half as W (backward_weight)";
  if (without_weights > 0)
    text += "; " + layers_that(without_weights, "without parameters has no W",
                               "without parameters have no W");
  return text;
}

std::string AssumedSplit::estimate() const {
  if (halved == 0) return "";
  return fmt::format("I and W of {} layer{}: half of the backward each, assumed", halved,
                     halved == 1 ? "" : "s");
}

AssumedSplit split_backwards(const TrainingSetup& setup, std::vector<LayerCosts>& layers) {
  AssumedSplit assumed;
  if (!runs_weight_parts(setup.schedule)) return assumed;
  const bool knows = knows_parameters(setup);
  for (std::uint32_t i = 0; i < layers.size(); ++i) {
    LayerCosts& layer = layers[i];
    if (layer.split || layer.backward.mean.count() == 0) continue;
    const Layer& of_graph = setup.model->graph.layer({i});
    if (knows && of_graph.parameters.count == 0 && of_graph.tied_to.empty()) {
      ++assumed.without_weights;
    } else {
      halve(layer);
      ++assumed.halved;
    }
  }
  return assumed;
}

}  // namespace plumbline
