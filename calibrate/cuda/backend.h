// The cuda backend: every device a GPU or a part of one, every op the kernels of its stage's
// layers.
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

/// An empty one; null in a build without CUDA.
std::shared_ptr<CudaDevicePool> cuda_device_pool();

struct CudaOptions : CudaDeviceOptions {
  double learning_rate = 0.01;
  /// Before iterations are measured, at least: until clocks have risen.
  double warm_up_seconds = 0.3;
  std::uint64_t seed = 1;
  std::shared_ptr<CudaDevicePool> pool{};  ///< Null: each backend opens devices of its own.
};

/// What a run on the cuda backend has learnt, to look at after it.
struct CudaResults {
  /// The mean loss of a sample in each iteration that was executed: warm-up, and as many more as
  /// its time takes, then each measured one twice, first alone and then with events that tell its
  /// trace.
  std::vector<double> losses;
  /// The newest weights of each stage, of its first device; each tensor without the gaps between
  /// them, layer by layer.
  std::vector<std::vector<float>> parameters;
};

/// Trains the scenario's network as the cpu backend does, with the same data, starting weights and
/// updates; a model that is known by its times alone runs as kernels that spin for them. One thread
/// enqueues each iteration in the order of the op graph; see run_on_cuda.
class CudaBackend : public Backend {
 public:
  /// Valid after a run.
  virtual CudaResults results() const = 0;
};

/// Errors: a network that is refused for cuda; links of the cluster that set a latency or a
/// bandwidth, together with replicas or on an outer level, or with NCCL; NCCL without a network; a
/// stage with more than 32 replicas but for NCCL; those of resolve_setup; no driver, no device, a
/// GPU too small to be split so, no NCCL, a build without CUDA (no device).
Result<std::unique_ptr<CudaBackend>> cuda_backend(const Scenario& scenario,
                                                  const CudaOptions& options);

}  // namespace plumbline
