// The matrix products of all devices of a backend.
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "calibrate/cuda/devices.h"
#include "calibrate/cuda/products.h"

namespace plumbline {

/// cuBLASLt's where it is installed, else our own. The devices outlive it.
class DeviceProducts {
 public:
  /// `own` asks for our own in any case. Errors: CudaError; CublasLtError.
  DeviceProducts(CudaDevices& devices, bool own);
  ~DeviceProducts();
  DeviceProducts(const DeviceProducts&) = delete;
  DeviceProducts& operator=(const DeviceProducts&) = delete;

  CudaProducts& operator[](std::size_t device) { return *of_device_[device]; }
  /// What they are: "cublasLt 13.1.0".
  std::string name() const { return std::string(of_device_.front()->name()); }
  /// Why they are our own although nobody asked for them; "" = they are not.
  const std::string& missing() const { return missing_; }

 private:
  CudaDevices& devices_;
  std::vector<std::unique_ptr<CudaProducts>> of_device_;
  std::string missing_;
};

}  // namespace plumbline
