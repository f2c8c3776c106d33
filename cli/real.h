// Common parts of `run` and `validate`: the options of a real run, and its progress.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/diagnostic.h"
#include "calibrate/cpu/backend.h"
#include "calibrate/cuda/backend.h"
#include "calibrate/cuda/calibration.h"
#include "calibrate/runtime/backend.h"
#include "calibrate/runtime/runner.h"
#include "calibrate/runtime/synthetic.h"

namespace CLI {
class App;
}

namespace plumbline {

/// The options of a real run.
struct RealArguments {
  std::string backend;
  RunOptions run;
  Noise synthetic;
  CpuOptions cpu;
  CudaOptions cuda;
};

/// Adds --backend, --iterations, --warm-up and the options of the synthetic backend.
void add_real_arguments(CLI::App& command, RealArguments& arguments);

/// Adds --one-gpu, --no-graphs and --nccl.
void add_cuda_device_arguments(CLI::App& command, CudaDeviceOptions& options);

/// A backend of this build: its name and a description.
struct BackendName {
  std::string_view name;
  std::string_view text;
};
inline constexpr BackendName kBackends[] = {
    {"synthetic", "threads that wait for the time that the model says"},
    {"cpu", "a core a device, fp32 kernels of a network's layers by oneDNN"},
    {"cuda", "a GPU a device, or a part of one GPU's SMs"}};

/// An error if there is no backend of this name.
std::optional<Diagnostic> check_backend(const std::string& name);

/// The requested backend, to run this scenario. Errors: those of cpu_backend and cuda_backend.
/// Requires: check_backend() accepts the name.
Result<std::unique_ptr<Backend>> make_backend(const RealArguments& arguments,
                                              const Scenario& scenario);

/// The devices of the cpu or cuda backend on which the layers of this network are timed. Errors:
/// those of cuda_calibration_devices.
Result<std::unique_ptr<CalibrationDevices>> open_devices(const std::string& backend,
                                                         const Network& network,
                                                         std::uint32_t devices,
                                                         const CudaCalibrationOptions& options);

}  // namespace plumbline
