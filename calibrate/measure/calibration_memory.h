// The memory that a calibration needs, computed before it is allocated.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "base/diagnostic.h"
#include "calibrate/training/stage_layout.h"
#include "models/network/network.h"
#include "models/profile/optimizer_kind.h"

namespace plumbline {

/// The bytes of all tensors of all walkers with micro-batches of `batch` samples: data, weights,
/// gradients, optimizer state, and the activations of the micro-batches in flight. The kernels' own
/// scratch comes on top.
double calibration_bytes(const Network& network, const StageLayers& stages, std::int64_t batch,
                         OptimizerKind optimizer);

/// An error (infeasible) if those bytes are more than `available`. It names both numbers, and the
/// largest batch that would fit.
std::optional<Diagnostic> check_for_memory(const Network& network, const Mark& mark,
                                           const StageLayers& stages, std::int64_t batch,
                                           OptimizerKind optimizer, Bytes available);

}  // namespace plumbline
