// Checks of a transformer's training options against its shape and against each other.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "base/diagnostic.h"
#include "models/import/transformer_options.h"

namespace plumbline {

/// The problems of the options. They name options as the user's input does.
Diagnostics misfits(const TransformerShape& shape, const TransformerOptions& options);

}  // namespace plumbline
