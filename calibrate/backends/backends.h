// Every backend of this build, by its name.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/diagnostic.h"
#include "calibrate/cpu/backend.h"
#include "calibrate/cuda/backend.h"
#include "calibrate/cuda/calibration.h"
#include "calibrate/runtime/backend.h"
#include "calibrate/runtime/synthetic.h"

namespace plumbline {

/// A backend of this build: its name and a description.
struct BackendName {
  std::string_view name;
  std::string_view text;
};
inline constexpr BackendName kBackends[] = {
    {"synthetic", "threads that wait for the time that the model says"},
    {"cpu", "a core a device, fp32 kernels of a network's layers by oneDNN"},
    {"cuda", "a GPU a device, or a part of one GPU's SMs"}};

/// A backend that is asked for, with the options of each.
struct BackendChoice {
  std::string backend;
  Noise synthetic;
  CpuOptions cpu;
  CudaOptions cuda;
};

/// An error if there is no backend of this name. `what` had it: "--backend".
std::optional<Diagnostic> check_backend(const std::string& what, const std::string& name);

/// The chosen backend, to run this scenario. Errors: those of cpu_backend and cuda_backend.
/// Requires: check_backend() accepts the name.
Result<std::unique_ptr<Backend>> make_backend(const BackendChoice& choice,
                                              const Scenario& scenario);

/// The devices of the cpu or cuda backend on which the layers of this network are timed. Errors:
/// those of cuda_calibration_devices.
Result<std::unique_ptr<CalibrationDevices>> open_devices(const std::string& backend,
                                                         const Network& network,
                                                         std::uint32_t devices,
                                                         const CudaCalibrationOptions& options);

}  // namespace plumbline
