// Times for layers that give none: from their ops, or from their FLOPs and bytes.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "base/diagnostic.h"
#include "models/profile/kernel_times.h"
#include "models/profile/profile.h"
#include "models/profile/roofline.h"

namespace plumbline {

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

/// The device and the rest that times are estimated with.
struct Estimate {
  DeviceRoofline device;
  std::optional<KernelSetting> kernels;  ///< For layers with ops; nothing: the roofline for all.
  OptimizerBytes optimizer;
};

/// Gives every layer without times the times of its ops, or of its work where it has none, on the
/// device; the other layers keep theirs. Such a layer without an update gets one, with two parts.
/// The first is the time of the bytes moved: at memory_bandwidth x efficiency, or at the share that
/// updates reach with kernels. The second is the time in which its group adds up the gradients of
/// replicated parameters, none of it hidden. That is an all-reduce or, where the group shares the
/// steps, a reduce-scatter before and an all-gather of the weights behind. It runs over the link,
/// or over the network cards of all its devices where the group spans servers. Describes this in
/// `Profile::estimated`. With a table of kernels, sets `Profile::kernel_shares`, those of the first
/// measurement with such times. Sets `Profile::errors` if all times come from kernels, in formats
/// that published runs have (not fp32), at least kMostlyModelled of them modelled, and no table
/// gives the times of launches. Errors, at `mark`: traffic over a link or a network that the device
/// lacks, products in fp8 without an fp8 peak, a layer that takes longer than kLargestQuantity.
std::optional<Diagnostic> estimate_times(Model& model, const Estimate& estimate, const Mark& mark);

/// The share of the time of kernels that is modelled in predictions with published errors: those
/// say nothing of measured kernels.
inline constexpr double kMostlyModelled = .9;

/// The published errors for micro-batches of `size` samples, each in `slices` parts. Nothing where
/// such costs are not those that kernels gave: at a size between or beyond those of the profile, or
/// in parts.
std::optional<PublishedErrors> errors_at(const Profile& profile, std::int64_t size,
                                         std::uint32_t slices);

}  // namespace plumbline
