// Times from work: the roofline of a device, for layers that nobody has measured.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "base/diagnostic.h"
#include "models/profile/profile.h"

namespace plumbline {

/// The share of a device's peaks that is counted on where nothing else is said. Whole runs of
/// transformers are reported near it: 52 % of the peak of A100s for a model of 10^12 parameters
/// (Narayanan et al. 2021, table 1). A device of ours may well reach another share: measure.
inline constexpr double kUsualEfficiency = 0.5;

/// What a device does at most, and what share of that is counted on.
/// Invariants: 0 < efficiency <= 1; 0 <= link_overlap, network_overlap <= 1; peak and
/// memory_bandwidth >= 1.
struct DeviceRoofline {
  std::string name;  ///< As a report calls it: "h100-sxm in bf16".
  FlopsPerSecond peak;
  std::optional<FlopsPerSecond> fp8_peak;  ///< Of what is multiplied in fp8, where it offers that.
  BytesPerSecond memory_bandwidth;
  double efficiency = kUsualEfficiency;
  std::optional<BytesPerSecond> link_bandwidth;     ///< One way, to neighbours in its server.
  std::optional<BytesPerSecond> network_bandwidth;  ///< One way, of its own network card.
  double link_overlap = 0;     ///< Share of link traffic that the same pass's computing hides.
  double network_overlap = 0;  ///< The same of network traffic.
};

/// max(flops / (peak x efficiency), memory_traffic / (memory_bandwidth x efficiency))
/// + link_traffic / link_bandwidth + network_traffic / network_bandwidth, with fp8_flops by
/// fp8_peak in the place of peak: computing overlaps with memory, and hides link_overlap and
/// network_overlap of the times on the two as far as it is as long as both (Williams, Waterman and
/// Patterson 2009, the roofline; the terms of link and network are ours). Nothing where that is
/// longer than kLargestQuantity. Requires: the bandwidth of what there is traffic over, fp8_peak
/// where some flops are in fp8.
std::optional<Duration> pass_time(const PassWork& work, const DeviceRoofline& device);

/// The most that the device computes in a second where the layers' products are in both formats:
/// their FLOPs in the time in which each kind takes its own peak. `peak` where none is in fp8.
FlopsPerSecond peak_of_mix(const Profile& profile, const DeviceRoofline& device);

/// Whether some layer has work in place of times.
bool needs_estimate(const Profile& profile);

/// What an optimizer holds and adds up for each byte of parameters.
struct OptimizerBytes {
  double state = 0;
  double gradients = 1;

  /// That a step moves: weights and state read and written, gradients read.
  double moved() const { return 2 + gradients + 2 * state; }
};

/// Of Adam as transformers are trained with it, where nothing else is said: gradients in fp32, two
/// moments in fp32, and beside weights in fewer bytes a copy of them in fp32 (Micikevicius et al.
/// 2018, "Mixed Precision Training", section 3.1).
OptimizerBytes usual_adam(NumberFormat weights);

/// Gives every layer without times those that its work takes on `device`, and an update, where it
/// has none, that of the bytes moved at memory_bandwidth x efficiency, and of what its group sends
/// to add up the gradients of what is replicated, none of which is hidden: an all-reduce, or where
/// the group shares the steps a reduce-scatter before and an all-gather of the weights behind; over
/// the link, or where the group spans servers over the network cards of all its devices. The
/// others keep theirs. Says so in `Profile::estimated`. Errors, at `mark`: traffic over a link or a
/// network that the device has not, products in fp8 where it has no peak of these, a layer that
/// takes longer than kLargestQuantity.
std::optional<Diagnostic> estimate_times(Model& model, const DeviceRoofline& device,
                                         const OptimizerBytes& optimizer, const Mark& mark);

}  // namespace plumbline
