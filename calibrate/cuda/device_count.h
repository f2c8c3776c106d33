// The options of the cuda backend's devices, in runs and in calibration.
//
// SPDX-License-Identifier: MIT
#pragma once

namespace plumbline {

struct CudaDeviceOptions {
  /// Parts of one GPU, even where there are as many GPUs as devices.
  bool one_gpu = false;
  /// Our own kernels compute products and convolutions, even where cuBLASLt and cuDNN are
  /// installed.
  bool builtin_kernels = false;
  /// An op's kernels are launched as one graph where that works; else one by one.
  bool graphs = true;
  /// NCCL moves tensors from GPU to GPU: send, receive and all-reduce. Otherwise copies do.
  bool nccl = false;
};

}  // namespace plumbline
