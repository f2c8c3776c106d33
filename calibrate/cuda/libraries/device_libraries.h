// The libraries for products and convolutions on the devices of a backend.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/cuda/driver/choices.h"
#include "calibrate/cuda/driver/devices.h"
#include "calibrate/cuda/driver/queue.h"
#include "calibrate/cuda/libraries/convolutions.h"
#include "calibrate/cuda/libraries/gemm.h"
#include "calibrate/cuda/libraries/nccl.h"
#include "models/network/network.h"

namespace plumbline {

/// cuBLASLt for products and, if the network has any, cuDNN for convolutions. Where these are not
/// installed, our own kernels. The devices outlive it.
class DeviceLibraries {
 public:
  /// `own` asks for our own kernels in any case. `nccl` is set if it moves the tensors. Libraries
  /// are started in the GPU's primary context, as they expect, also for parts of a GPU. Errors:
  /// CudaError.
  DeviceLibraries(CudaDevices& devices, const Network& network, bool own,
                  const std::optional<Nccl>& nccl);
  /// Uses the algorithms with which a profile was measured.
  void take(const CudaChoices& choices) { choices_ = choices; }
  /// The algorithms that were chosen or taken so far. Devices with the same number of SMs share
  /// them.
  const CudaChoices& choices() const { return choices_; }
  ~DeviceLibraries();
  DeviceLibraries(const DeviceLibraries&) = delete;
  DeviceLibraries& operator=(const DeviceLibraries&) = delete;

  /// A queue for work on one of the device's streams.
  CudaQueue queue(std::size_t device, CUstream stream);
  /// The libraries' names: "cublasLt 13.1.0, cuDNN 9.19.0".
  std::string name() const;
  /// The library that moves tensors from GPU to GPU; null = copies do.
  const Nccl* nccl() const { return nccl_ ? &*nccl_ : nullptr; }
  /// The reasons why our own kernels are used although nobody asked for them; a sentence each.
  std::vector<std::string> missing() const;

 private:
  struct OfDevice {
    std::unique_ptr<CudaGemms> products;
    std::unique_ptr<CudaConvolutions> convolutions;
  };

  CudaDevices& devices_;
  CudaChoices choices_;
  std::vector<OfDevice> of_device_;
  std::optional<Nccl> nccl_;
  std::vector<std::string> missing_;
};

/// NCCL for these devices, if it is asked for and there are several: `given`, or else the installed
/// one. Errors (no device): NCCL is not there; the devices are parts of one GPU.
Result<std::optional<Nccl>> nccl_for(CudaDevices& devices, bool asked, const Nccl* given);

}  // namespace plumbline
