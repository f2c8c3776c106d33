// Sums over the layers of each stage.
//
// SPDX-License-Identifier: MIT
#include "calibrate/measure/calibration_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"

namespace plumbline {
namespace {

double count(Bytes bytes) { return static_cast<double>(bytes.count); }

/// The bytes of a layer's input; 4 bytes for each number or id.
double input_bytes(const NetworkLayer& layer, double batch) {
  return 4 * batch * static_cast<double>(layer.input.elements());
}

}  // namespace

double calibration_bytes(const Network& network, const StageLayers& stages, std::int64_t batch,
                         OptimizerKind optimizer) {
  const auto samples = static_cast<double>(batch);
  const double in_flight = static_cast<double>(stages.size()) + 1;
  const double copies = optimizer == OptimizerKind::adam ? 4 : 2;  // of the weights' size
  double sum = 0;
  for (const auto& [first, last] : stages) {
    const NetworkLayer& begin = network.layers[first];
    // The last layer's output is one of the activations below; its gradient is as large.
    double slot = count(output_bytes(network, network.layers[last], batch));
    if (!std::holds_alternative<Embedding>(begin.settings)) slot += 2 * input_bytes(begin, samples);
    double widest = 0;    // of the gradients between layers, which share memory in full backwards
    double max_left = 0;  // of the layers' scratch, which shares memory too
    for (std::size_t i = first; i <= last; ++i) {
      const NetworkLayer& layer = network.layers[i];
      if (i > first) widest = std::max(widest, input_bytes(layer, samples));
      max_left = std::max(max_left, count(left_bytes(network, layer, batch)));
      slot +=
          count(activation_bytes(network, layer, batch)) + count(left_bytes(network, layer, batch));
      if (i > first) slot += input_bytes(layer, samples);  // its gradient, until W
      sum += copies * count(parameter_bytes(network, layer));
    }
    const double data = input_bytes(network.layers.front(), samples);
    sum += in_flight * (slot + data) + 2 * widest + max_left;
  }
  return sum;
}

std::optional<Diagnostic> check_for_memory(const Network& network, const Mark& mark,
                                           const StageLayers& stages, std::int64_t batch,
                                           OptimizerKind optimizer, Bytes available) {
  const auto fits = [&](std::int64_t samples) {
    return calibration_bytes(network, stages, samples, optimizer) <= count(available);
  };
  if (fits(batch)) return std::nullopt;
  std::int64_t max = 0;  // the largest batch known to fit, or 0
  for (std::int64_t too_many = batch; too_many - max > 1;) {
    const std::int64_t middle = max + (too_many - max) / 2;
    (fits(middle) ? max : too_many) = middle;
  }
  const double needed = calibration_bytes(network, stages, batch, optimizer);
  Diagnostic too_large = input_error(
      mark,
      fmt::format("micro-batches of {} samples take {} of memory on {} device{}, and {} are "
                  "available",
                  batch, to_text(Bytes{static_cast<std::int64_t>(std::min(needed, 9e18))}),
                  stages.size(), stages.size() == 1 ? "" : "s", to_text(available)),
      max == 0 ? "not even one sample fits: a smaller network, or another machine"
               : fmt::format("--batch {} is about the largest that fits", max));
  too_large.fault = Fault::infeasible;
  return too_large;
}

}  // namespace plumbline
