// The words of a derived profile: the formulas above its layers, what its numbers cover and where
// they come from.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/import/layer_derivation.h"
#include "models/import/transformer_options.h"
#include "models/import/transformer_shape.h"
#include "models/profile/profile.h"

namespace plumbline {

/// The formulas of a layer with their values, one line each.
std::vector<std::string> formula_lines(const LayerDerivation& layer, const TransformerShape& shape,
                                       const TransformerOptions& options);

/// What is told above all layers: the symbols of their formulas.
std::vector<std::string> head_lines(const TransformerShape& shape,
                                    const TransformerOptions& options);

/// What the numbers stand for, and what they do not cover. `group` is that of the profile.
std::vector<std::string> notes_of(const TransformerShape& shape, const TransformerOptions& options,
                                  const DeviceGroup& group);

/// What of the shape the numbers do not cover.
std::vector<std::string> uncounted(const TransformerShape& shape,
                                   const TransformerOptions& options);

/// What the profile says of its origin.
std::map<std::string, std::string> provenance_of(const TransformerShape& shape,
                                                 const TransformerOptions& options);

}  // namespace plumbline
