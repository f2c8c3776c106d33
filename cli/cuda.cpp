// What commands do with CUDA before they measure. SPDX-License-Identifier: MIT
#include "cli/cuda.h"

#include <fmt/format.h>

#include <cstdio>

#include "cli/command.h"

#ifdef PLUMBLINE_HAS_CUDA
#include "calibrate/cuda/check.h"
#include "calibrate/cuda/driver.h"
#endif

namespace plumbline {

#ifdef PLUMBLINE_HAS_CUDA

std::optional<Diagnostic> refuse_cuda() {
  const auto driver = load_cuda_driver();
  if (!driver) return driver.problems().front();
  return std::nullopt;
}

int check_cuda(std::uint32_t devices) {
  const auto driver = load_cuda_driver();
  if (!driver) return fail(driver.problems());
  try {
    const auto check = check_cuda_devices(*driver, devices, false);
    if (!check) return fail(check.problems());
    const int written = write_output(check->text + cuda_library_text(), "");
    if (written != ExitCode::done) return written;
    for (const std::string& failure : check->failures)
      std::fputs(fmt::format("error: {}\n", failure).c_str(), stderr);
    return check->failures.empty() ? ExitCode::done : ExitCode::check_failed;
  } catch (const CudaError& error) {
    Diagnostic wrong;
    wrong.message = error.what();
    wrong.fault = Fault::no_device;
    return fail({wrong});
  }
}

#else

std::optional<Diagnostic> refuse_cuda() {
  Diagnostic missing;
  missing.message = "this build has no cuda backend: it was made without a CUDA toolkit";
  missing.help =
      "install CUDA 13.0 or later (nvcc and cuda.h), then configure anew and build; or take "
      "--backend cpu";
  missing.fault = Fault::no_device;
  return missing;
}

int check_cuda(std::uint32_t) { return fail({*refuse_cuda()}); }

#endif

}  // namespace plumbline
