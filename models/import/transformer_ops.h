// The ops of a transformer's layers, from its shape.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>

#include "models/import/transformer_layers.h"
#include "models/ops/layer_op.h"

namespace plumbline {

/// The ops of the layer of this kind (LayerDerivation::kind), for one micro-batch on one device.
/// Requires: as derive_layers(); no count of the layer is beyond 2^53.
LayerOps transformer_ops(const std::string& role, const TransformerShape& shape,
                         const TransformerOptions& options);

}  // namespace plumbline
