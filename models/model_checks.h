// Checks that every way of making a model shares.
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>

#include "models/diagnostic.h"
#include "models/profile.h"

namespace plumbline {

/// The most layers that a model may have.
inline constexpr std::int64_t kMostLayers = 100'000;

/// Adds an error that names the layers of a cycle, if the graph has one, at the edge that closes
/// it: `mark_of` says where an edge stands.
void refuse_cycle(const LayerGraph& graph, const std::function<Mark(const LayerEdge&)>& mark_of,
                  Diagnostics& problems);

}  // namespace plumbline
