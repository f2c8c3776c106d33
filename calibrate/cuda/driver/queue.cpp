// Our own kernels in one context.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/driver/queue.h"

namespace plumbline {

CudaKernels::CudaKernels(const CudaDriver& driver, const void* image) : driver_(driver) {
  PLUMBLINE_CUDA(driver_, cuModuleLoadData, &module_, image);
}

CudaKernels::~CudaKernels() { driver_.cuModuleUnload(module_); }

CUfunction CudaKernels::operator[](std::string_view name) const {
  if (const auto found = functions_.find(name); found != functions_.end()) return found->second;
  std::string key(name);
  CUfunction function = nullptr;
  check_cuda(driver_, "cuModuleGetFunction " + key,
             driver_.cuModuleGetFunction(&function, module_, key.c_str()));
  return functions_.emplace(std::move(key), function).first->second;
}

}  // namespace plumbline
