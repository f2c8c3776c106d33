// The cuda backend. Every device is a GPU or a part of one; every op runs the kernels of its
// stage's layers.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/diagnostic.h"
#include "calibrate/cuda/device_count.h"
#include "calibrate/runtime/backend.h"
#include "sim/scenario/scenario.h"

// Nothing of CUDA is included here: the command line looks the same in builds without it.

namespace plumbline {

/// Opened devices that several runs use one after the other: calibrate/cuda/driver/device_pool.h.
class CudaDevicePool;

/// Makes an empty pool. Null in a build without CUDA.
std::shared_ptr<CudaDevicePool> cuda_device_pool();

struct CudaOptions : CudaDeviceOptions {
  double learning_rate = 0.01;
  /// The shortest warm-up before iterations are measured, so that clocks can rise.
  double warm_up_seconds = 0.3;
  std::uint64_t seed = 1;
  std::shared_ptr<CudaDevicePool> pool{};  ///< Null: each backend opens devices of its own.
};

/// The results of training: to be read after a run on the cuda backend.
struct CudaResults {
  /// The mean loss per sample of each executed iteration. First come the warm-up iterations, with
  /// as many more as the warm-up time takes. Then each measured iteration comes twice: first alone,
  /// then with events that give its trace.
  std::vector<double> losses;
  /// The newest weights of each stage, from its first device. Tensors follow each other layer by
  /// layer, without gaps.
  std::vector<std::vector<float>> parameters;
};

/// Trains the scenario's network as the cpu backend does, with the same data, starting weights and
/// updates; a model that is given by its times alone runs as kernels that spin for these times. One
/// thread enqueues each iteration in the order of the op graph; see run_on_cuda.
class CudaBackend : public Backend {
 public:
  /// Valid after a run.
  virtual CudaResults results() const = 0;
};

/// Errors: a network that the cuda backend refuses; links of the cluster that set a latency or a
/// bandwidth, together with replicas, on an outer level, or with NCCL; NCCL without a network; a
/// stage with more than 32 replicas without NCCL; the errors of resolve_setup. Errors (no device):
/// no driver, no device, a GPU too small for the split, no NCCL, a build without CUDA.
Result<std::unique_ptr<CudaBackend>> cuda_backend(const Scenario& scenario,
                                                  const CudaOptions& options);

}  // namespace plumbline
