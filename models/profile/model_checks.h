// Checks for every way of making a model.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>

#include "base/diagnostic.h"
#include "models/profile/profile.h"

namespace plumbline {

/// The most layers that a model may have.
inline constexpr std::int64_t kMaxLayers = 100'000;

/// Adds an error that names the layers of a cycle, if the graph has one. Its place is the edge that
/// closes the cycle; `mark_of` gives the place of an edge.
void report_cycle(const LayerGraph& graph, const std::function<Mark(const LayerEdge&)>& mark_of,
                  Diagnostics& problems);

/// Adds an error for each text of the model that a profile cannot hold: names and kinds that are
/// not UTF-8, or longer than 10,000 bytes. `mark` is the file of the model.
void report_unwritable(const Model& model, const Mark& mark, Diagnostics& problems);

}  // namespace plumbline
