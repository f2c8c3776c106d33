// The setting in which a scenario's kernels run.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "models/profile/kernel_times.h"
#include "sim/scenario/device_section.h"
#include "sim/scenario/scenario.h"

namespace plumbline {

/// The setting of the scenario's run on `device`, of which `roofline` has the rates. Nothing if no
/// layer waits for the times of its ops, or if an efficiency asks for a roofline. Adds remarks to
/// `scenario.notes`. Requires: cluster, copies and stages are resolved.
std::optional<KernelSetting> kernel_setting(Scenario& scenario, const DeviceChoice& device,
                                            const DeviceRoofline& roofline);

/// The time that the stack waits between the ops of a pipeline; 0 without one.
Duration wait_between_ops(const Scenario& scenario, const SoftwareStack& stack);

}  // namespace plumbline
