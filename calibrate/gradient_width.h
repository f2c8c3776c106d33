// Gradients of networks that are executed.
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <optional>

#include "models/diagnostic.h"
#include "sim/scenario.h"

namespace plumbline {

/// Kernels add up gradients in the network's element type: why a scenario that says otherwise is
/// not run, if so.
inline std::optional<Diagnostic> refuse_gradient_width(const Scenario& scenario) {
  if (scenario.gradient_width == 1) return std::nullopt;
  return input_error(scenario.gradient_mark,
                     fmt::format("training.gradients is {}, and a network is run with gradients "
                                 "as wide as its parameters",
                                 scenario.gradient_width),
                     "training.gradients: 1; --backend synthetic runs any");
}

}  // namespace plumbline
