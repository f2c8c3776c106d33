// Sums over layers, in samples.
//
// SPDX-License-Identifier: MIT
#include "models/network/model_flops.h"

#include <numeric>

#include "base/bug.h"

namespace plumbline {
namespace {

std::optional<double> with_backward(double forward) {
  if (forward <= 0) return std::nullopt;
  return (1 + kBackwardPerForward) * forward;
}

/// FLOPs of the forwards of one batch of `measurement`, on one device. Nothing where the FLOPs of a
/// layer are unknown.
std::optional<double> forward_flops(const Measurement& measurement) {
  double sum = 0;
  for (const LayerCosts& layer : measurement.layers) {
    if (!layer.work) return std::nullopt;
    sum += static_cast<double>(layer.work->forward.flops.count);
  }
  return sum;
}

}  // namespace

std::optional<double> model_flops(const Profile& profile, std::int64_t size) {
  PLUMBLINE_CHECK(size > 0, size);
  const Measurement& held = profile.measurements.front();
  const DeviceGroup& group = profile.group;
  std::optional<double> forward;
  if (group.forward) {
    forward = static_cast<double>(group.forward->count);
  } else if (const auto each = forward_flops(held)) {
    forward = *each * static_cast<double>(group.devices);
  }
  if (!forward) return std::nullopt;
  const double batches =
      held.batch ? static_cast<double>(size) / static_cast<double>(*held.batch) : 1;
  return with_backward(batches * *forward);
}

std::optional<double> model_flops(const Network& network, std::int64_t size) {
  PLUMBLINE_CHECK(size > 0, size);
  const double forward = std::accumulate(
      network.layers.begin(), network.layers.end(), 0.0,
      [](double sum, const NetworkLayer& layer) { return sum + layer.forward_flops; });
  return with_backward(static_cast<double>(size) * forward);
}

}  // namespace plumbline
