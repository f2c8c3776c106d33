// What computes products and convolutions on the devices of a backend.
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

/// cuBLASLt's products and, where the network has any, cuDNN's convolutions, where these are
/// installed, else our own. The devices outlive it.
class DeviceLibraries {
 public:
  /// `own` asks for our own in any case; `nccl` is there where tensors go by it. Libraries are
  /// started in the GPU's primary context, as they expect, also for parts of it. Errors: CudaError.
  DeviceLibraries(CudaDevices& devices, const Network& network, bool own,
                  const std::optional<Nccl>& nccl);
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
  /// What moves tensors from GPU to GPU; null = copies do.
  const Nccl* nccl() const { return nccl_ ? &*nccl_ : nullptr; }
  /// Why some are our own although nobody asked for them; a sentence each.
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

/// NCCL for these devices, where it is asked for and there are several: `given`, or else what is
/// installed. Errors (no device): it is not there; the devices are parts of one GPU.
Result<std::optional<Nccl>> nccl_for(CudaDevices& devices, bool asked, const Nccl* given);

}  // namespace plumbline
