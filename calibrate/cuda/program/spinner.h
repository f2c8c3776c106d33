// Kernels that take the times that a model says, on CUDA devices.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "calibrate/cuda/driver/devices.h"
#include "calibrate/cuda/driver/scratch.h"
#include "calibrate/cuda/program/work.h"
#include "sim/graph/op_graph.h"

namespace plumbline {

/// Each op, or part of one, is a kernel that keeps all SMs of its device for the time that the
/// graph gives the op, by the device's clock. Nothing is computed and nothing is copied: links hold
/// their channels. It shows what of a difference between run and prediction is not the kernels'.
class CudaSpinner : public CudaWork {
 public:
  /// What is given outlives it.
  CudaSpinner(CudaDevices& devices, const OpGraph& graph);

  void prepare(std::uint32_t slot) override;
  void enqueue(const CudaStep& step, CUstream stream) override;

 private:
  CudaDevices& devices_;
  const OpGraph& graph_;
  std::vector<CudaScratch> times_;  ///< By slot: where the kernel notes its own.
};

}  // namespace plumbline
