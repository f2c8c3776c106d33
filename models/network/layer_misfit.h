// Whether an input suits a layer. The layer's output is derived by derive_layer in network.h.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "models/network/network.h"

namespace plumbline {

/// The reason why an input does not suit a layer.
struct Misfit {
  std::string wanted;  ///< Follows "takes": "[tokens, features]".
  std::string help;
};

/// The reason why a layer with these settings cannot take `input`; nothing where it can. Requires:
/// every count of the settings is in the range that network files allow.
std::optional<Misfit> find_misfit(const LayerSettings& settings, const NetworkInput& input);

}  // namespace plumbline
