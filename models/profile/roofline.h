// Times from work: the roofline of a device, for layers without measured times.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "base/diagnostic.h"
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

/// Whether some layer has work in place of times.
bool needs_estimate(const Profile& profile);

/// The bytes that an optimizer holds and adds up for each byte of parameters.
struct OptimizerBytes {
  double state = 0;
  double gradients = 1;

  /// The bytes that a step moves: weights and state read and written, gradients read.
  double moved() const { return 2 + gradients + 2 * state; }
};

/// Adam as usual for transformers, the default: gradients in fp32, two moments in fp32, and an fp32
/// copy of weights that have fewer bytes (Micikevicius et al. 2018, "Mixed Precision Training",
/// section 3.1).
OptimizerBytes usual_adam(NumberFormat weights);

/// Gives every layer without times the times of its work on `device`; the other layers keep theirs.
/// Such a layer without an update gets one, with two parts. The first is the time of the bytes
/// moved at memory_bandwidth x efficiency. The second is the time in which its group adds up the
/// gradients of replicated parameters, none of it hidden. That is an all-reduce or, where the group
/// shares the steps, a reduce-scatter before and an all-gather of the weights behind. It runs over
/// the link, or over the network cards of all its devices where the group spans servers. Describes
/// this in `Profile::estimated`. Errors, at `mark`: traffic over a link or a network that the
/// device lacks, products in fp8 without an fp8 peak, a layer that takes longer than
/// kLargestQuantity.
std::optional<Diagnostic> estimate_times(Model& model, const DeviceRoofline& device,
                                         const OptimizerBytes& optimizer, const Mark& mark);

}  // namespace plumbline
