// Own kernels, found in their module by name. SPDX-License-Identifier: MIT
#include "calibrate/cuda/queue.h"

namespace plumbline {

CudaKernels::CudaKernels(const CudaDriver& driver, const void* image) : driver_(driver) {
  PLUMBLINE_CUDA(driver_, cuModuleLoadData, &module_, image);
}

CudaKernels::~CudaKernels() { driver_.cuModuleUnload(module_); }

CUfunction CudaKernels::operator[](std::string_view name) const {
  const auto known = functions_.find(name);
  if (known != functions_.end()) return known->second;
  std::string text(name);
  CUfunction function = nullptr;
  PLUMBLINE_CUDA(driver_, cuModuleGetFunction, &function, module_, text.c_str());
  return functions_.emplace(std::move(text), function).first->second;
}

}  // namespace plumbline
