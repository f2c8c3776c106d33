// The cuda backend on a given driver: this machine's, or a test's.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "calibrate/cuda/backend.h"
#include "calibrate/cuda/driver/driver.h"
#include "calibrate/cuda/libraries/nccl.h"

namespace plumbline {

/// As cuda_backend(scenario, options), on this driver. If NCCL is asked for, `nccl` is used; null =
/// the installed one.
Result<std::unique_ptr<CudaBackend>> cuda_backend(const CudaDriver& driver,
                                                  const Scenario& scenario,
                                                  const CudaOptions& options,
                                                  const Nccl* nccl = nullptr);

}  // namespace plumbline
