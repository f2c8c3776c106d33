// The FLOPs that a model needs, on whatever device it runs; utilization is a share of them.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "models/network/network.h"
#include "models/profile/profile.h"

namespace plumbline {

/// FLOPs of a backward for each FLOP of its forward, in model FLOPs: one product for the gradient
/// of the input and one for the gradient of the weights (Narayanan et al. 2021, appendix; Chowdhery
/// et al. 2022, appendix B).
inline constexpr double kBackwardPerForward = 2;

/// FLOPs of forward and backward of one micro-batch of `size` samples, by all devices of a group:
/// three times the forward FLOPs. Work that is computed twice, for whatever reason, counts once. In
/// a profile of unknown batch, the FLOPs are those of one micro-batch. Nothing where neither the
/// group's FLOPs nor the FLOPs of all layers (of the first measurement) are known, or where all are
/// 0. Requires: size > 0.
std::optional<double> model_flops(const Profile& profile, std::int64_t size);

/// The same for a network that is really executed; the FLOPs of its layers are known.
std::optional<double> model_flops(const Network& network, std::int64_t size);

}  // namespace plumbline
