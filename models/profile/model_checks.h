// Checks that every way of making a model shares.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>

#include "base/diagnostic.h"
#include "models/profile/profile.h"

namespace plumbline {

/// The most layers that a model may have.
inline constexpr std::int64_t kMaxLayers = 100'000;

/// Adds an error that names the layers of a cycle, if the graph has one, at the edge that closes
/// it: `mark_of` says where an edge stands.
void report_cycle(const LayerGraph& graph, const std::function<Mark(const LayerEdge&)>& mark_of,
                  Diagnostics& problems);

/// Adds an error for each text of the model that no profile can hold: names and kinds that are not
/// UTF-8, or longer than 10,000 bytes. `mark` is the file that they come from.
void report_unwritable(const Model& model, const Mark& mark, Diagnostics& problems);

}  // namespace plumbline
