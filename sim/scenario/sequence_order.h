// Where the stages of a sequence stand, which one host launches on all devices.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "sim/scenario/scenario.h"

namespace plumbline {

/// Gives the stages of a sequence in schedule.file their devices: those of plan.devices, else those
/// that the file gives, else by plan.replicas in turn, else one each; where there are fewer devices
/// than stages and they divide them, stage s stands on device s mod p, with a note. How many stages
/// a host's loop has (`F0 F1 B0`) the plan says, else the number of devices.
/// Does nothing for any other order. Requires: the cluster is settled.
/// Errors: a loop whose number of stages nothing says; more ops than are held.
std::optional<Diagnostic> place_sequence(Scenario& scenario);

}  // namespace plumbline
