// The layers of a transformer, from its shape and the way it is trained.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "models/import/layer_derivation.h"
#include "models/import/transformer_options.h"
#include "models/import/transformer_shape.h"

namespace plumbline {

/// The layers from the embedding to the head. Requires: context_parallel divides the sequence;
/// tensor_parallel divides heads, key_value_heads and the widths of the MLPs; with
/// sequence_parallel it is above 1 and divides the tokens of each device, too; expert_parallel is 1
/// or, times expert_tensor_parallel, a multiple of devices_per_sample(), and beside tensor_parallel
/// there is sequence_parallel; expert_tensor_parallel divides the width of an expert; blocks whose
/// attention and MLP run side by side are not split.
std::vector<LayerDerivation> derive_layers(const TransformerShape& shape,
                                           const TransformerOptions& options);

/// The model with the block of a module that predicts a further token alone.
TransformerShape further_shape(const TransformerShape& shape);
bool has_experts_in_module(const TransformerShape& shape);

/// The numbers of a layer that each device of a group holds as the others do, where each trains
/// with tokens of its own.
SaturatingCount replicated_parameters(const LayerDerivation& layer,
                                      const TransformerOptions& options);

/// The numbers of the whole model that a group holds more than once.
SaturatingCount replicated_of(const TransformerShape& shape, TransformerOptions options);

}  // namespace plumbline
