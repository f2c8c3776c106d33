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

/// The reason why the cuda backend cannot run here, if there is one (no device): a build without
/// CUDA, no driver, or no device. Starts the driver.
std::optional<Diagnostic> cuda_is_missing();

/// The report of `calibrate --backend cuda --check` on the devices.
struct CudaCheck {
  std::string text;                   ///< GPUs, driver, split, proof; libraries.
  std::vector<std::string> failures;  ///< Failures of the proof, a sentence each.
};

/// Opens that many devices. Proves that each stays on its own SMs and that all work at the same
/// time. Errors (no device): the errors of cuda_is_missing; a GPU too small for the split; a driver
/// call that fails.
Result<CudaCheck> check_cuda_here(std::uint32_t devices);

}  // namespace plumbline
