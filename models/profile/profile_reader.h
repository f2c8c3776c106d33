// Reading layers and native profiles (`kind: profile`) from YAML.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "base/diagnostic.h"
#include "base/section_reader.h"
#include "models/profile/profile.h"

namespace plumbline {

/// The layers of one list, with their costs.
struct LayerList {
  std::vector<Layer> layers;
  std::vector<LayerCosts> costs;
};

/// Reads the keys of one layer but its name: kind, forward, backward or backward_input and
/// backward_weight, update, output, activation, selective, parameters, replicated. It also reads
/// the keys of read_layer_work, which may replace the times. Absent sizes and updates are 0. Sets
/// kind, parameters and replicated of `layer`.
LayerCosts read_layer_costs(SectionReader& section, Layer& layer, Diagnostics& problems);

/// Reads the list under `key` of `section`: maps with `name` and the keys above. Adds all problems;
/// nothing comes back where there was one.
std::optional<LayerList> read_layers(SectionReader& section, std::string_view key,
                                     Diagnostics& problems);

/// Reads the pairs of layer names under `key`; absent = a chain in the order of `layers`. Refuses
/// cycles. Adds all problems; nothing comes back where there was one.
std::optional<LayerGraph> read_edges(SectionReader& section, std::string_view key,
                                     std::vector<Layer> layers, Diagnostics& problems);

/// Reads `group` of `section`: devices and forward_flops.
DeviceGroup read_group(SectionReader& section, Diagnostics& problems);

/// Reads `dtype` of `section`: one of kNumberFormats.
std::optional<NumberFormat> read_dtype(SectionReader& section);

/// Reads per_op, hand_over, per_iteration, add_up and stash from `section`.
Overheads read_overheads(SectionReader& section);

/// Reads a profile file. Errors: all text that the format does not know, or that does not fit
/// together.
Result<Model> read_profile(const std::string& path);

/// The same for a document in memory.
Result<Model> parse_profile(const std::shared_ptr<const Source>& source);

}  // namespace plumbline
