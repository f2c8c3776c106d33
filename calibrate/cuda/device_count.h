// How the cuda backend takes its devices, in runs and in calibration.
//
// SPDX-License-Identifier: MIT
#pragma once

namespace plumbline {

struct CudaDeviceOptions {
  /// Parts of one GPU, even where there are as many GPUs as devices.
  bool one_gpu = false;
  /// Products and convolutions by our own kernels, even where cuBLASLt and cuDNN are installed.
  bool builtin_kernels = false;
  /// An op's kernels are launched as one graph where that works; else one by one.
  bool graphs = true;
  /// Tensors go from GPU to GPU by NCCL: sent and received, all-reduced. Else by copies.
  bool nccl = false;
};

}  // namespace plumbline
