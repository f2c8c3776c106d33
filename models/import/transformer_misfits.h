// Options of a transformer's training that do not go with its shape or with each other.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "base/diagnostic.h"
#include "models/import/transformer_layers.h"

namespace plumbline {

/// What is wrong with the options, by the names that they have where they are given.
Diagnostics misfits(const TransformerShape& shape, const TransformerOptions& options);

}  // namespace plumbline
