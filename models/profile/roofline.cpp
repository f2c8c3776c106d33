// One bound for each pass over a layer.
//
// SPDX-License-Identifier: MIT
#include "models/profile/roofline.h"

#include <algorithm>
#include <cmath>

#include "base/bug.h"

namespace plumbline {
namespace {

double ratio(std::int64_t amount, std::int64_t rate) {
  return static_cast<double>(amount) / static_cast<double>(rate);
}

}  // namespace

PassParts roofline_parts(const PassWork& work, const DeviceRoofline& device) {
  PLUMBLINE_CHECK(device.link_bandwidth || work.link_traffic.count == 0, work.link_traffic.count);
  PLUMBLINE_CHECK(device.network_bandwidth || work.network_traffic.count == 0,
                  work.network_traffic.count);
  PLUMBLINE_CHECK(device.fp8_peak || work.fp8_flops.count == 0, work.fp8_flops.count);
  PassParts parts;
  double computing_s = ratio(work.flops.count - work.fp8_flops.count, device.peak.count);
  if (device.fp8_peak) computing_s += ratio(work.fp8_flops.count, device.fp8_peak->count);
  parts.own_s =
      std::max(computing_s, ratio(work.memory_traffic.count, device.memory_bandwidth.count)) /
      device.efficiency;
  const auto sent_s = [](Bytes traffic, const std::optional<BytesPerSecond>& bandwidth) {
    return bandwidth ? ratio(traffic.count, bandwidth->count) : 0;
  };
  const double link_s = sent_s(work.link_traffic, device.link_bandwidth);
  const double network_s = sent_s(work.network_traffic, device.network_bandwidth);
  const double hideable_s = link_s * device.link_overlap + network_s * device.network_overlap;
  const double hidden_s = std::min(hideable_s, parts.own_s);
  parts.sent_s = link_s + network_s - hidden_s;
  parts.free_s = parts.own_s - hidden_s;
  return parts;
}

std::optional<Duration> pass_time(const PassWork& work, const DeviceRoofline& device) {
  return roofline_parts(work, device).time();
}

FlopsPerSecond peak_of_mix(const Profile& profile, const DeviceRoofline& device) {
  double all = 0;
  double in_fp8 = 0;
  for (const LayerCosts& layer : profile.measurements.front().layers) {
    if (!layer.work) continue;
    all += static_cast<double>(layer.work->forward.flops.count);
    in_fp8 += static_cast<double>(layer.work->forward.fp8_flops.count);
  }
  if (in_fp8 == 0 || !device.fp8_peak) return device.peak;
  const double time_s = (all - in_fp8) / static_cast<double>(device.peak.count) +
                        in_fp8 / static_cast<double>(device.fp8_peak->count);
  return {std::llround(all / time_s)};
}

}  // namespace plumbline
