// Checks of a transformer's training options against its shape and against each other.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "base/diagnostic.h"
#include "models/import/transformer_options.h"

namespace plumbline {

/// The problems of the options. They name options as the user's input does.
Diagnostics misfits(const TransformerShape& shape, const TransformerOptions& options);

/// Whether `devices` of a tensor-parallel group divide all that they have to share of each block.
bool may_divide(const TransformerShape& shape, std::int64_t devices);

/// Whether devices may share the tokens of a sample: no state passes from token to token, and no
/// token chooses its keys.
bool may_share_samples(const TransformerShape& shape, const TransformerOptions& options);

}  // namespace plumbline
