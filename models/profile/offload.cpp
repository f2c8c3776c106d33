// Layer by layer: its bytes, then its passes.
//
// SPDX-License-Identifier: MIT
#include "models/profile/offload.h"

#include <algorithm>
#include <cmath>

#include "base/quantity.h"

namespace plumbline {
namespace {

/// Makes a pass take at least `least`, and its shares those of the longer time. Returns what it
/// takes longer.
Duration lengthen(MeasuredTime& time, Duration least, double& sent, double& free) {
  const Duration longer = least - time.mean;
  if (longer.count() <= 0) return Duration{};
  const double part = seconds(time.mean) / seconds(least);
  sent *= part;
  free *= part;
  time.mean = least;
  for (std::optional<Duration>* quartile : {&time.median, &time.q1, &time.q3}) {
    if (*quartile) *quartile = std::max(**quartile, least);
  }
  return longer;
}

Duration lengthen(MeasuredTime& time, Duration least, double& sent) {
  double free = 0;
  return lengthen(time, least, sent, free);
}

/// Offloads a part of one layer, and adds it to the sum.
void offload(LayerCosts& layer, double share, BytesPerSecond bandwidth, OffloadedLayers& sum) {
  const Bytes kept = layer.activation - layer.selected();
  const Bytes moved = {static_cast<std::int64_t>(share * static_cast<double>(kept.count))};
  if (moved.count <= 0) return;
  const Duration copy =
      round_up(static_cast<double>(moved.count) / static_cast<double>(bandwidth.count) * 1e9);
  layer.activation = layer.activation - moved;
  layer.temporary += moved + moved;
  const Duration forward = lengthen(layer.forward, copy, layer.sent.forward, layer.free.forward);
  const Duration backward =
      lengthen(layer.backward, copy, layer.sent.backward, layer.free.backward);
  // A backward in two parts needs it from its first part on.
  const Duration input =
      layer.split ? lengthen(layer.split->input, copy, layer.sent.backward_input) : Duration{};
  ++sum.layers;
  sum.bytes += moved;
  sum.longer_forwards += forward.count() > 0 ? 1 : 0;
  sum.longer_backwards += backward.count() > 0 ? 1 : 0;
  sum.longer_inputs += input.count() > 0 ? 1 : 0;
  sum.forward += forward;
  sum.backward += backward;
  sum.input += input;
}

}  // namespace

OffloadedLayers offload_activations(Profile& profile, double share, BytesPerSecond bandwidth) {
  OffloadedLayers first;
  for (Measurement& measurement : profile.measurements) {
    OffloadedLayers sum;
    for (LayerCosts& layer : measurement.layers) {
      if (!layer.ops || layer.ops->is_block()) offload(layer, share, bandwidth, sum);
    }
    if (&measurement == &profile.measurements.front()) first = sum;
  }
  return first;
}

}  // namespace plumbline
