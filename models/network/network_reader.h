// Reading networks (`kind: network`) from YAML.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>

#include "base/diagnostic.h"
#include "models/network/network.h"

namespace plumbline {

/// The most layers of a network, counted with repeats written out.
inline constexpr std::int64_t kMaxNetworkLayers = 10'000;

/// Reads a network file. Errors: all text that the format does not know, or that does not fit
/// together. Where two layers do not chain, the message gives both lines.
Result<Network> read_network(const std::string& path);

/// The same for a document in memory.
Result<Network> parse_network(const std::shared_ptr<const Source>& source);

}  // namespace plumbline
