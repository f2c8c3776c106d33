// Which optimizer's steps are meant: by a scenario, by a measured profile, by a run.
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

/// "sgd", "adam": as `--optimizer` and the provenance of a profile spell it.
constexpr std::string_view name(OptimizerKind kind) {
  return kind == OptimizerKind::adam ? "adam" : "sgd";
}

/// With one float a parameter and moment of state: Adam where that is asked for, in bytes of state
/// for each byte of parameters (training.optimizer_state).
constexpr OptimizerKind optimizer_for(double optimizer_state) {
  return optimizer_state >= 2 ? OptimizerKind::adam : OptimizerKind::gradient_descent;
}

}  // namespace plumbline
