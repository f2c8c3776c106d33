// The devices of the stages of a sequence, which one host launches on all devices.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "sim/scenario/scenario.h"

namespace plumbline {

/// Gives the stages of a sequence in schedule.file their devices. These are the devices of
/// plan.devices, else of the file, else devices in turn by plan.replicas, else one device per
/// stage. If there are fewer devices than stages, and the number p of devices divides the number of
/// stages, stage s runs on device s mod p, with a note. The number of stages of a host's loop (`F0
/// F1 B0`) comes from the plan, else from the number of devices. Does nothing for any other order.
/// Requires: the cluster is resolved. Errors: a loop without a number of stages; more ops than the
/// limit.
std::optional<Diagnostic> place_sequence(Scenario& scenario);

}  // namespace plumbline
