// The cuda backend as the commands see it, in every build: with CUDA or without.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "models/diagnostic.h"

namespace plumbline {

/// Why the cuda backend cannot run anything here, if so: this build is without CUDA, or the machine
/// has no driver, or no device. Starts the driver.
std::optional<Diagnostic> refuse_cuda();

/// `calibrate --backend cuda --check`: prints the devices, the libraries and what was proven, on
/// stdout; what is wrong on stderr. Returns the exit code: done, check_failed, or no_device.
int check_cuda(std::uint32_t devices);

}  // namespace plumbline
