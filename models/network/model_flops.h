// The arithmetic that a model needs, whatever runs it: what utilization is counted of.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "models/network/network.h"
#include "models/profile/profile.h"

namespace plumbline {

/// What a backward takes for each FLOP of its forward where model FLOPs are counted: a product for
/// the input's gradient and one for the weights' (Narayanan et al. 2021, appendix; Chowdhery et al.
/// 2022, appendix B).
inline constexpr double kBackwardPerForward = 2;

/// FLOPs of forward and backward of one micro-batch of `size` samples, by all devices of a group:
/// three times those of the forwards. What is computed twice, for whatever reason, counts once. A
/// profile of unknown batch holds those of a micro-batch. Nothing where neither
/// the group's FLOPs are known nor those of all layers (of the first measurement), or all are 0.
/// Requires: size > 0.
std::optional<double> model_flops(const Profile& profile, std::int64_t size);

/// The same for what is really executed; its layers know their FLOPs.
std::optional<double> model_flops(const Network& network, std::int64_t size);

}  // namespace plumbline
