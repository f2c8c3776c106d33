// A network as a table: the shape, the parameters and the costs of each layer.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "base/document.h"
#include "models/network/network.h"

namespace plumbline {

/// One row per layer: shape, parameters, bytes and FLOPs of a micro-batch of `batch` samples.
Document to_table(const Network& network, std::int64_t batch);

}  // namespace plumbline
