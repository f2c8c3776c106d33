// Common parts of `run` and `validate`: the options of a real run, and its progress.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/diagnostic.h"
#include "calibrate/backends/backends.h"
#include "calibrate/runtime/runner.h"

namespace CLI {
class App;
}

namespace plumbline {

/// The options of a real run.
struct RealArguments : BackendChoice {
  RunOptions run;
};

/// Adds --backend, --iterations, --warm-up and the options of the synthetic backend.
void add_real_arguments(CLI::App& command, RealArguments& arguments);

/// Adds --one-gpu, --no-graphs and --nccl.
void add_cuda_device_arguments(CLI::App& command, CudaDeviceOptions& options);

/// make_backend(), with the GPU told to the recorder.
Result<std::unique_ptr<Backend>> recorded_backend(const RealArguments& arguments,
                                                  const Scenario& scenario);

/// open_devices(), with the GPU told to the recorder.
Result<std::unique_ptr<CalibrationDevices>> recorded_devices(const std::string& backend,
                                                             const Network& network,
                                                             std::uint32_t devices,
                                                             const CudaDeviceOptions& options);

}  // namespace plumbline
