// The overheads of the runner on this machine.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>

#include "base/diagnostic.h"
#include "models/profile/optimizer_kind.h"
#include "models/profile/profile.h"

namespace plumbline {

/// Runs pipelines of ops that take no time, so that only the runner's own time is left. `per_op`
/// comes from one device, `hand_over` from the additional time of two devices that wait for each
/// other. Takes some tenths of a second.
Overheads measure_overheads();

/// The additional time of an update of `parameters` parameters on each of two cores that both hold
/// them. It adds up the gradients that both have just written, and clears memory that no update has
/// just read. The result is in bytes of gradients per second. Nothing where there is one core,
/// nothing to add, or no difference. Takes half a second.
std::optional<BytesPerSecond> measure_add_up(OptimizerKind optimizer, std::size_t parameters);

/// The additional time of an update of `parameters` parameters where the old ones are kept, so that
/// the new ones are written elsewhere. The result is in bytes of parameters per second. Nothing
/// where there is nothing to update, or no difference. Takes some tenths of a second.
std::optional<BytesPerSecond> measure_stash(OptimizerKind optimizer, std::size_t parameters);

}  // namespace plumbline
