// What stands for the cuda backend in builds without it. SPDX-License-Identifier: MIT
#include "calibrate/cuda_backend.h"

namespace plumbline {

Result<std::unique_ptr<CudaBackend>> cuda_backend(const Scenario&, const CudaOptions&) {
  Diagnostic missing =
      input_error({}, "this build has no cuda backend: it was made without a CUDA toolkit",
                  "install the toolkit (nvcc and cuda.h, 13.0 or later) and build again");
  missing.fault = Fault::no_device;
  return missing;
}

}  // namespace plumbline
