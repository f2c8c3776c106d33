// What the runner itself costs on this machine.
// SPDX-License-Identifier: MIT
#pragma once

#include "models/diagnostic.h"
#include "models/profile.h"

namespace plumbline {

/// Runs pipelines of ops that take no time: what is left is the runner. `per_op` from one device,
/// `hand_over` from what two devices that wait for each other take beyond it. Takes some tenths of
/// a second.
Overheads measure_overheads();

}  // namespace plumbline
