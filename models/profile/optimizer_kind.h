// The optimizer of a scenario, of a measured profile, or of a run.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

namespace plumbline {

enum class OptimizerKind : std::uint8_t {
  gradient_descent,  ///< weights - rate x gradient; no state.
  adam,              ///< Two moments (Kingma and Ba 2015, without weight decay).
};

/// "sgd", "adam": the spelling of `--optimizer` and of the provenance of a profile.
constexpr std::string_view name(OptimizerKind kind) {
  return kind == OptimizerKind::adam ? "adam" : "sgd";
}

/// The optimizer for this much state, in bytes per byte of parameters (training.optimizer_state):
/// Adam for two moments or more, with one float per parameter and moment.
constexpr OptimizerKind optimizer_for(double optimizer_state) {
  return optimizer_state >= 2 ? OptimizerKind::adam : OptimizerKind::gradient_descent;
}

}  // namespace plumbline
