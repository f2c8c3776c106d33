// The stand-in for the cuda backend in builds without it.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/backend.h"
#include "calibrate/cuda/calibration.h"
#include "calibrate/cuda/check.h"

namespace plumbline {
namespace {

Diagnostic missing_cuda() {
  Diagnostic missing =
      input_error({}, "this build has no cuda backend: it was made without a CUDA toolkit",
                  "install CUDA 13.0 or later (nvcc and cuda.h), then configure anew and build; or "
                  "take --backend cpu");
  missing.fault = Fault::no_device;
  return missing;
}

}  // namespace

std::shared_ptr<CudaDevicePool> cuda_device_pool() { return nullptr; }

Result<std::unique_ptr<CudaBackend>> cuda_backend(const Scenario&, const CudaOptions&) {
  return missing_cuda();
}

Result<std::unique_ptr<CalibrationDevices>> cuda_calibration_devices(
    const Network&, std::uint32_t, const CudaCalibrationOptions&) {
  return missing_cuda();
}

std::optional<Diagnostic> cuda_is_missing() { return missing_cuda(); }

Result<CudaCheck> check_cuda_here(std::uint32_t) { return missing_cuda(); }

}  // namespace plumbline
