// Times from work: the roofline of a device, for layers that nobody has measured.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "models/profile.h"

namespace plumbline {

/// The share of a device's peaks that is counted on where nothing else is said. Whole runs of
/// transformers are reported near it: 52 % of the peak of A100s for a model of 10^12 parameters
/// (Narayanan et al. 2021, table 1). A device of ours may well reach another share: measure.
inline constexpr double kUsualEfficiency = 0.5;

/// What a device does at most, and what share of that is counted on.
/// Invariants: 0 < efficiency <= 1; 0 <= link_overlap <= 1; peak and memory_bandwidth >= 1.
struct DeviceRoofline {
  std::string name;  ///< As a report calls it: "h100-sxm in bf16".
  FlopsPerSecond peak;
  BytesPerSecond memory_bandwidth;
  double efficiency = kUsualEfficiency;
  std::optional<BytesPerSecond> link_bandwidth;  ///< One way, to the device's neighbours.
  double link_overlap = 0;  ///< Share of link traffic that the same pass's computing hides.
};

/// max(flops / (peak x efficiency), memory_traffic / (memory_bandwidth x efficiency))
/// + link_traffic / link_bandwidth: computing overlaps with memory, and hides link_overlap of the
/// time on the link as far as it is as long (Williams, Waterman and Patterson 2009, the roofline;
/// the term of the link is ours). Nothing where that is longer than kLargestQuantity. Requires: a
/// link bandwidth where there is link traffic.
std::optional<Duration> pass_time(const PassWork& work, const DeviceRoofline& device);

/// Whether some layer has work in place of times.
bool needs_estimate(const Profile& profile);

/// What an optimizer holds and adds up for each byte of parameters.
struct OptimizerBytes {
  double state = 0;
  double gradients = 1;

  /// That a step moves: weights and state read and written, gradients read.
  double moved() const { return 2 + gradients + 2 * state; }
};

/// Gives every layer without times those that its work takes on `device`, and an update, where it
/// has none, that of the bytes moved at memory_bandwidth x efficiency, and of what its group sends
/// to add up the gradients of what is replicated, none of which is hidden: an all-reduce, or where
/// the group shares the steps a reduce-scatter before and an all-gather of the weights behind. The
/// others keep theirs. Says so in `Profile::estimated`. Errors, at `mark`: link traffic without a
/// link bandwidth, a layer that takes longer than kLargestQuantity.
std::optional<Diagnostic> estimate_times(Model& model, const DeviceRoofline& device,
                                         const OptimizerBytes& optimizer, const Mark& mark);

}  // namespace plumbline
