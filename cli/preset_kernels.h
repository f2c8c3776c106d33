// The kernels of a device that has a preset, without a scenario.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>

#include "base/diagnostic.h"
#include "models/kernels/kernel_model.h"

namespace plumbline {

/// The kernels of `preset` with this stack, in this number format, and with the times of a table;
/// null = none. Errors: those of roofline_of. Requires: both names are known.
Result<KernelModel> preset_kernels(const std::string& preset, const std::string& stack,
                                   NumberFormat format,
                                   std::shared_ptr<const MeasuredKernels> measured);

}  // namespace plumbline
