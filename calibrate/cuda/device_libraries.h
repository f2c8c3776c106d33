// What computes products and convolutions on the devices of a backend.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "calibrate/cuda/choices.h"
#include "calibrate/cuda/convolutions.h"
#include "calibrate/cuda/devices.h"
#include "calibrate/cuda/products.h"
#include "calibrate/cuda/queue.h"
#include "models/network.h"

namespace plumbline {

/// cuBLASLt's products and, where the network has any, cuDNN's convolutions, where these are
/// installed, else our own. The devices outlive it.
class DeviceLibraries {
 public:
  /// `own` asks for our own in any case. Errors: CudaError; CublasLtError; CudnnError.
  DeviceLibraries(CudaDevices& devices, const Network& network, bool own);
  /// Takes the algorithms that a profile was measured with.
  void take(const CudaChoices& choices) { choices_ = choices; }
  /// The algorithms that were chosen so far, or taken: devices with as many SMs share them.
  const CudaChoices& choices() const { return choices_; }
  ~DeviceLibraries();
  DeviceLibraries(const DeviceLibraries&) = delete;
  DeviceLibraries& operator=(const DeviceLibraries&) = delete;

  /// For work on one of the device's streams.
  CudaQueue queue(std::size_t device, CUstream stream);
  /// What they are: "cublasLt 13.1.0, cuDNN 9.19.0".
  std::string name() const;
  /// Why some are our own although nobody asked for them; a sentence each.
  const std::vector<std::string>& missing() const { return missing_; }

 private:
  struct OfDevice {
    std::unique_ptr<CudaProducts> products;
    std::unique_ptr<CudaConvolutions> convolutions;
  };

  CudaDevices& devices_;
  CudaChoices choices_;
  std::vector<OfDevice> of_device_;
  std::vector<std::string> missing_;
};

}  // namespace plumbline
