// Whether an input suits a layer; what the layer makes of it is derive_layer in network.h.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "models/network/network.h"

namespace plumbline {

/// Why an input does not suit a layer.
struct Misfit {
  std::string wanted;  ///< Goes on after "takes": "[tokens, features]".
  std::string help;
};

/// Nothing where a layer with these settings can take `input`.
/// Requires: every count of the settings is in the range that network files allow.
std::optional<Misfit> find_misfit(const LayerSettings& settings, const NetworkInput& input);

}  // namespace plumbline
