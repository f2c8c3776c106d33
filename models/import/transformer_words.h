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
std::vector<std::string> formula_lines(const LayerDerivation& layer, const TransformerShape& model,
                                       const TransformerShape& shape,
                                       const TransformerOptions& options);

/// The lines above all layers: the symbols of their formulas.
std::vector<std::string> head_lines(const TransformerShape& shape,
                                    const TransformerOptions& options);

/// Notes on the meaning of the numbers, and on the costs that they leave out. `group` is that of
/// the profile.
std::vector<std::string> notes_of(const TransformerShape& shape, const TransformerOptions& options,
                                  const DeviceGroup& group);

/// Notes on the parts of the shape that the numbers leave out.
std::vector<std::string> uncounted(const TransformerShape& shape,
                                   const TransformerOptions& options);

/// The origin that the profile states.
std::map<std::string, std::string> provenance_of(const TransformerShape& shape,
                                                 const TransformerOptions& options);

}  // namespace plumbline
