// Sums over layers, in samples.
// SPDX-License-Identifier: MIT
#include "models/model_flops.h"

#include <algorithm>
#include <numeric>

#include "models/bug.h"

namespace plumbline {
namespace {

std::optional<double> with_backward(double forward) {
  if (forward <= 0) return std::nullopt;
  return (1 + kBackwardPerForward) * forward;
}

bool knows_work(const Measurement& measurement) {
  return std::all_of(measurement.layers.begin(), measurement.layers.end(),
                     [](const LayerCosts& layer) { return layer.work.has_value(); });
}

}  // namespace

std::optional<double> model_flops(const Profile& profile, std::int64_t size) {
  PLUMBLINE_CHECK(size > 0, size);
  const auto known = std::find_if(profile.measurements.begin(), profile.measurements.end(),
                                  [&](const Measurement& m) { return knows_work(m); });
  if (known == profile.measurements.end()) return std::nullopt;
  const double of_layers = std::accumulate(
      known->layers.begin(), known->layers.end(), 0.0, [](double sum, const LayerCosts& layer) {
        return sum + static_cast<double>(layer.work->forward.flops.count);
      });
  const DeviceGroup& group = profile.group;
  const double forward = group.forward ? static_cast<double>(group.forward->count)
                                       : of_layers * static_cast<double>(group.devices);
  const double batches =
      known->batch ? static_cast<double>(size) / static_cast<double>(*known->batch) : 1;
  return with_backward(batches * forward);
}

std::optional<double> model_flops(const Network& network, std::int64_t size) {
  PLUMBLINE_CHECK(size > 0, size);
  const double forward = std::accumulate(
      network.layers.begin(), network.layers.end(), 0.0,
      [](double sum, const NetworkLayer& layer) { return sum + layer.forward_flops; });
  return with_backward(static_cast<double>(size) * forward);
}

}  // namespace plumbline
