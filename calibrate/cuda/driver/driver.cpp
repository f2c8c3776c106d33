// The driver's library, its functions, and its messages for failures.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/driver/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <utility>
#include <vector>

namespace plumbline {
namespace {

Diagnostic no_driver(std::string message, std::string help) {
  Diagnostic diagnostic;
  diagnostic.message = std::move(message);
  diagnostic.help = std::move(help);
  diagnostic.fault = Fault::no_device;
  return diagnostic;
}

std::string_view advice(CUresult result) {
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return "take fewer or smaller micro-batches, or more devices";
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
      return "the device is lost to this process: run again, and look at nvidia-smi if it comes "
             "back";
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      return "the kernels of this build do not fit the device or its driver: build with its "
             "toolkit";
    default:
      return "";
  }
}

}  // namespace

Result<CudaDriver> cuda_driver_of(const std::function<void*(const char*)>& symbol) {
  CudaDriver driver;
#define PLUMBLINE_CUDA_NAME(name) #name
#define PLUMBLINE_CUDA_LOAD(call) \
  driver.call = reinterpret_cast<decltype(driver.call)>(symbol(PLUMBLINE_CUDA_NAME(call)));
  PLUMBLINE_CUDA_CALLS(PLUMBLINE_CUDA_LOAD)
#undef PLUMBLINE_CUDA_LOAD
  // Its second version is CUDA 12.8's (cudaTypedefs.h); the first one takes the same.
  if (driver.cuEventElapsedTime == nullptr) {
    driver.cuEventElapsedTime =
        reinterpret_cast<decltype(driver.cuEventElapsedTime)>(symbol("cuEventElapsedTime"));
  }
  std::vector<std::string> missing;
#define PLUMBLINE_CUDA_NEED(call) \
  if (driver.call == nullptr) missing.emplace_back(PLUMBLINE_CUDA_NAME(call));
  PLUMBLINE_CUDA_CORE_CALLS(PLUMBLINE_CUDA_NEED)
#undef PLUMBLINE_CUDA_NEED
#undef PLUMBLINE_CUDA_NAME
  if (missing.empty()) return driver;
  int version = 0;
  if (driver.cuDriverGetVersion != nullptr) driver.cuDriverGetVersion(&version);
  return no_driver(
      fmt::format("the CUDA driver ({}.{}) is too old: it lacks {}{}", version / 1000,
                  version % 1000 / 10, missing.front(),
                  missing.size() > 1 ? fmt::format(" and {} more", missing.size() - 1) : ""),
      "install a driver for CUDA 12 or 13");
}

std::string missing_for_split(const CudaDriver& driver) {
  constexpr std::string_view kLater = "cuGreenCtxStreamCreate";  // 12.5, and the others 12.4
  std::string missing;
#define PLUMBLINE_CUDA_NEED(call) \
  if (driver.call == nullptr && missing.empty()) missing = #call;
  PLUMBLINE_CUDA_SPLIT_CALLS(PLUMBLINE_CUDA_NEED)
#undef PLUMBLINE_CUDA_NEED
  if (missing.empty()) return "";
  return fmt::format("{}, which a driver for CUDA {} brings", missing,
                     missing == kLater ? "12.5" : "12.4");
}

Result<CudaDriver> load_cuda_driver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    return no_driver("there is no CUDA driver on this machine (libcuda.so.1 is not found)",
                     "install NVIDIA's driver, or take --backend cpu");
  }
  auto found = cuda_driver_of([&](const char* name) { return dlsym(library, name); });
  if (!found) return found;
  CudaDriver driver = *std::move(found);
  // Each stream needs its own connection: kernels on a shared connection wait for each other,
  // whatever SMs they run on. The driver reads this variable once, here. Training frameworks set it
  // to 1.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
  if (const CUresult result = driver.cuInit(0); result != CUDA_SUCCESS) {
    return no_driver(cuda_failure(driver, "cuInit", result),
                     "look whether nvidia-smi shows the device");
  }
  int devices = 0;
  if (const CUresult result = driver.cuDeviceGetCount(&devices); result != CUDA_SUCCESS)
    return no_driver(cuda_failure(driver, "cuDeviceGetCount", result), "");
  if (devices == 0) {
    return no_driver("the CUDA driver shows no device",
                     "look at CUDA_VISIBLE_DEVICES, or take --backend cpu");
  }
  driver.keeps_contexts = true;
  return driver;
}

std::string cuda_failure(const CudaDriver& driver, std::string_view call, CUresult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (driver.cuGetErrorName != nullptr) driver.cuGetErrorName(result, &name);
  if (driver.cuGetErrorString != nullptr) driver.cuGetErrorString(result, &text);
  if (name == nullptr) return fmt::format("{}: error {}", call, static_cast<int>(result));
  return fmt::format("{}: {} ({})", call, text == nullptr ? "failed" : text, name);
}

CudaError::CudaError(const CudaDriver& driver, std::string_view call, CUresult result)
    : std::runtime_error([&] {
        const std::string_view help = advice(result);
        return cuda_failure(driver, call, result) +
               (help.empty() ? std::string() : fmt::format("; {}", help));
      }()),
      result_(result) {}

void check_cuda(const CudaDriver& driver, std::string_view call, CUresult result) {
  if (result != CUDA_SUCCESS) throw CudaError(driver, call, result);
}

}  // namespace plumbline
