// Kernels on CUDA devices that take a model's times.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "calibrate/cuda/driver/devices.h"
#include "calibrate/cuda/driver/scratch.h"
#include "calibrate/cuda/program/work.h"
#include "sim/graph/op_graph.h"

namespace plumbline {

/// Each op, or part of one, is a kernel that keeps all SMs of its device busy for the op's time in
/// the graph, by the device's clock. Nothing is computed or copied; links hold their channels. It
/// shows how much of a difference between run and prediction is not due to the kernels.
class CudaSpinner : public CudaWork {
 public:
  /// The arguments outlive it.
  CudaSpinner(CudaDevices& devices, const OpGraph& graph);

  void prepare(std::uint32_t slot) override;
  void enqueue(const CudaStep& step, CUstream stream) override;

 private:
  CudaDevices& devices_;
  const OpGraph& graph_;
  std::vector<CudaScratch> times_;  ///< By slot: the kernel's notes of its times.
};

}  // namespace plumbline
