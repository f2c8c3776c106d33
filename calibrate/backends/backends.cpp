// Backends by their names.
//
// SPDX-License-Identifier: MIT
#include "calibrate/backends/backends.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "calibrate/cpu/calibration.h"

namespace plumbline {

std::optional<Diagnostic> check_backend(const std::string& what, const std::string& name) {
  std::vector<std::string> names;
  for (const BackendName& backend : kBackends) names.emplace_back(backend.name);
  if (std::find(names.begin(), names.end(), name) != names.end()) return std::nullopt;
  Diagnostic wrong;
  wrong.message = fmt::format("{} is '{}', which is no backend", what, clipped(name));
  wrong.help = name == "gpu" ? "did you mean 'cuda'?" : did_you_mean(name, names);
  if (wrong.help.empty()) wrong.help = fmt::format("one of {}", fmt::join(names, ", "));
  return wrong;
}

Result<std::unique_ptr<Backend>> make_backend(const BackendChoice& choice,
                                              const Scenario& scenario) {
  if (choice.backend == "synthetic") return synthetic_backend(choice.synthetic);
  if (choice.backend == "cuda") {
    auto cuda = cuda_backend(scenario, choice.cuda);
    if (!cuda) return cuda.problems();
    return std::unique_ptr<Backend>(*std::move(cuda));
  }
  auto cpu = cpu_backend(scenario, choice.cpu);
  if (!cpu) return cpu.problems();
  return std::unique_ptr<Backend>(*std::move(cpu));
}

Result<std::unique_ptr<CalibrationDevices>> open_devices(const std::string& backend,
                                                         const Network& network,
                                                         std::uint32_t devices,
                                                         const CudaCalibrationOptions& options) {
  if (backend == "cpu") return cpu_devices();
  return cuda_calibration_devices(network, devices, options);
}

}  // namespace plumbline
