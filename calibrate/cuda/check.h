// Whether CUDA can be used here, in every build: with CUDA or without.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"

// Nothing of CUDA is included here: the command line looks the same in builds without it.

namespace plumbline {

/// Why the cuda backend cannot run anything here, if so (no device): this build is without CUDA, or
/// the machine has no driver, or no device. Starts the driver.
std::optional<Diagnostic> cuda_is_missing();

/// What `calibrate --backend cuda --check` tells of the devices.
struct CudaCheck {
  std::string text;                   ///< GPUs, driver, split, what was proven; libraries.
  std::vector<std::string> failures;  ///< Of the proof, a sentence each.
};

/// Opens that many devices and proves that they keep to themselves and work at the same time.
/// Errors (no device): those of cuda_is_missing; a GPU too small for the split; a driver call that
/// fails.
Result<CudaCheck> check_cuda_here(std::uint32_t devices);

}  // namespace plumbline
