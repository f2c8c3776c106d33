// Reading lists of layers, and the edges between them, from YAML: of profiles and of scenarios.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/section_reader.h"
#include "models/profile/profile.h"

namespace plumbline {

/// Layers with what they cost, as one list gives them.
struct LayerList {
  std::vector<Layer> layers;
  std::vector<LayerCosts> costs;
};

/// Reads the keys of one layer but its name: kind, forward, backward or backward_input and
/// backward_weight, update, output, activation, selective, parameters, replicated, and what
/// read_layer_work reads, which may stand in the place of the times; absent sizes and updates are
/// 0. Sets kind, parameters and replicated of `layer`.
LayerCosts read_layer_costs(SectionReader& section, Layer& layer, Diagnostics& problems);

/// Reads the list under `key` of `section`: maps with name and the keys above.
/// Adds all problems; nothing comes back where there was one.
std::optional<LayerList> read_layers(SectionReader& section, std::string_view key,
                                     Diagnostics& problems);

/// Reads the pairs of layer names under `key`, absent = a chain in the order of `layers`, and
/// refuses cycles. Adds all problems; nothing comes back where there was one.
std::optional<LayerGraph> read_edges(SectionReader& section, std::string_view key,
                                     std::vector<Layer> layers, Diagnostics& problems);

/// Where layers of these names stand in the graph.
using LayerIds = std::map<std::string, LayerId, std::less<>>;
LayerIds layer_ids(const std::vector<Layer>& layers);

std::vector<std::string> layer_names(const std::vector<Layer>& layers);

}  // namespace plumbline
