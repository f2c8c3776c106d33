// Readers of lists of layers and of the edges between them, in the YAML of profiles and scenarios.
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
#include "models/profile/ops_reader.h"
#include "models/profile/profile.h"

namespace plumbline {

/// Layers and their costs, from one list.
struct LayerList {
  std::vector<Layer> layers;
  std::vector<LayerCosts> costs;
};

/// Reads the keys of one layer except its name: kind, forward, backward or backward_input and
/// backward_weight, update, output, activation, selective, parameters, replicated, ops, and the
/// keys of read_layer_work, which may replace the times. Absent sizes and updates are 0. Sets kind,
/// parameters and replicated of `layer`.
LayerCosts read_layer_costs(SectionReader& section, Layer& layer, NamedOps& ops,
                            Diagnostics& problems);

/// Reads the list under `key` of `section`: maps with name, the keys above, and tied. Adds all
/// problems; nullopt = there was one.
std::optional<LayerList> read_layers(SectionReader& section, std::string_view key, NamedOps& ops,
                                     Diagnostics& problems);

/// Reads the pairs of layer names under `key`; absent = a chain in the order of `layers`. Refuses
/// cycles. Adds all problems; nullopt = there was one.
std::optional<LayerGraph> read_edges(SectionReader& section, std::string_view key,
                                     std::vector<Layer> layers, Diagnostics& problems);

/// The ids of layers in the graph, by name.
using LayerIds = std::map<std::string, LayerId, std::less<>>;
LayerIds layer_ids(const std::vector<Layer>& layers);

std::vector<std::string> layer_names(const std::vector<Layer>& layers);

}  // namespace plumbline
