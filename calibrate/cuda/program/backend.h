// The cuda backend on a driver that is at hand: this machine's, or a test's.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "calibrate/cuda/backend.h"
#include "calibrate/cuda/driver/driver.h"
#include "calibrate/cuda/libraries/nccl.h"

namespace plumbline {

/// As cuda_backend(scenario, options), on this driver, and where NCCL is asked for with `nccl`;
/// null = what is installed.
Result<std::unique_ptr<CudaBackend>> cuda_backend(const CudaDriver& driver,
                                                  const Scenario& scenario,
                                                  const CudaOptions& options,
                                                  const Nccl* nccl = nullptr);

}  // namespace plumbline
