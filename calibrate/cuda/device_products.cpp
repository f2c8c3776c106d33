// Choosing products. SPDX-License-Identifier: MIT
#include "calibrate/cuda/device_products.h"

#include <optional>

#include "calibrate/cuda/cublaslt.h"
#include "calibrate/cuda/libraries.h"
#include "calibrate/cuda/own_products.h"

namespace plumbline {
namespace {

Result<CublasLt> find_cublaslt() {
  const auto found = load_cuda_library(kCublasLt);
  if (!found) return found.problems();
  return load_cublaslt(found->path);
}

}  // namespace

DeviceProducts::DeviceProducts(CudaDevices& devices, bool own) : devices_(devices) {
  std::optional<CublasLt> library;
  if (!own) {
    const auto found = find_cublaslt();
    if (found) library = *found;
    if (!found) missing_ = found.problems().front().message;
  }
  for (const CudaDevice& device : devices.all()) {
    if (!library) {
      of_device_.push_back(own_products());
      continue;
    }
    PLUMBLINE_CUDA(devices.driver(), cuCtxSetCurrent, device.context);
    of_device_.push_back(std::make_unique<CublasLtProducts>(devices.driver(), *library));
  }
}

DeviceProducts::~DeviceProducts() {
  for (std::size_t i = 0; i < of_device_.size(); ++i) {
    devices_.driver().cuCtxSetCurrent(devices_.all()[i].context);
    of_device_[i].reset();
  }
}

}  // namespace plumbline
