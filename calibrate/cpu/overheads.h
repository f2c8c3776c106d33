// What the runner itself costs on this machine.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>

#include "base/diagnostic.h"
#include "models/profile/optimizer_kind.h"
#include "models/profile/profile.h"

namespace plumbline {

/// Runs pipelines of ops that take no time: what is left is the runner. `per_op` from one device,
/// `hand_over` from what two devices that wait for each other take beyond it. Takes some tenths of
/// a second.
Overheads measure_overheads();

/// What an update of so many parameters takes longer on each of two cores that hold them both: it
/// adds up the gradients that both have just written, and clears memory that no update has just
/// read. Bytes of gradients per second; nothing where there is one core, nothing to add, or no
/// difference. Takes half a second.
std::optional<BytesPerSecond> measure_add_up(OptimizerKind optimizer, std::size_t parameters);

/// What an update of so many parameters takes longer on a core where the old ones are kept, so that
/// the new ones are written elsewhere. Bytes of parameters per second; nothing where there is
/// nothing to update, or no difference. Takes some tenths of a second.
std::optional<BytesPerSecond> measure_stash(OptimizerKind optimizer, std::size_t parameters);

}  // namespace plumbline
