// Checks that every way of making a model shares.
// SPDX-License-Identifier: MIT
#pragma once

#include "models/diagnostic.h"
#include "models/profile.h"

namespace plumbline {

/// The most layers that a model may have.
inline constexpr std::int64_t kMostLayers = 100'000;

/// Adds an error at `mark` that names the layers of a cycle, if the graph has one.
void refuse_cycle(const LayerGraph& graph, const Mark& mark, Diagnostics& problems);

}  // namespace plumbline
