// Times from work: the roofline of a device.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "models/profile/pass_parts.h"
#include "models/profile/profile.h"

namespace plumbline {

/// The default share of a device's peaks that a layer reaches. Reports of whole transformer runs
/// are near it: 52 % of the peak of A100s for a model of 10^12 parameters (Narayanan et al. 2021,
/// table 1). A device of ours may reach another share: measure it.
inline constexpr double kUsualEfficiency = 0.5;

/// The peak rates of a device, and the share of them that layers reach. Invariants: 0 < efficiency
/// <= 1; 0 <= link_overlap, network_overlap <= 1; peak and memory_bandwidth >= 1.
struct DeviceRoofline {
  std::string name;  ///< The name in reports: "h100-sxm in bf16".
  FlopsPerSecond peak;
  std::optional<FlopsPerSecond> fp8_peak;  ///< The peak of products in fp8, if it offers that.
  BytesPerSecond memory_bandwidth;
  double efficiency = kUsualEfficiency;
  std::optional<BytesPerSecond> link_bandwidth;     ///< One way, to neighbours in its server.
  std::optional<BytesPerSecond> network_bandwidth;  ///< One way, of its own network card.
  double link_overlap = 0;     ///< Share of link traffic hidden by the computing of the same pass.
  double network_overlap = 0;  ///< The same for network traffic.
};

/// The time of a pass: max(flops / (peak x efficiency), memory_traffic / (memory_bandwidth x
/// efficiency)) + link_traffic / link_bandwidth + network_traffic / network_bandwidth, where
/// fp8_flops use fp8_peak. Computing overlaps with memory traffic. It also hides the shares
/// link_overlap and network_overlap of the last two times, at most the first term. Source:
/// Williams, Waterman and Patterson 2009, the roofline; the terms of link and network are ours.
/// Nothing where the time is longer than kLargestQuantity. Requires: the bandwidth of each link
/// with traffic; fp8_peak if some flops are in fp8.
std::optional<Duration> pass_time(const PassWork& work, const DeviceRoofline& device);

/// The most FLOPs per second for layers with products in both formats: their FLOPs over the time in
/// which each format runs at its own peak. `peak` if none is in fp8.
FlopsPerSecond peak_of_mix(const Profile& profile, const DeviceRoofline& device);

/// The parts of a pass, in seconds; see pass_time(). Requires: as there.
PassParts roofline_parts(const PassWork& work, const DeviceRoofline& device);

}  // namespace plumbline
