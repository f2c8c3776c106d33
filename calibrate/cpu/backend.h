// The cpu backend: every device a core, every op the real fp32 kernels of its stage's layers.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "calibrate/runtime/backend.h"
#include "sim/scenario/scenario.h"

namespace plumbline {

struct CpuOptions {
  double learning_rate = 0.01;
  std::uint64_t seed = 1;
};

/// What a run on the cpu backend has learnt and computed, to look at after it.
struct CpuResults {
  /// The mean loss of a sample in each iteration, warm-up included.
  std::vector<double> losses;
  /// The newest weights of each stage, of its first replica in the first copy; layer by layer, as
  /// CpuStage places them.
  std::vector<std::vector<float>> parameters;
};

/// Trains the scenario's network on a small data set that repeats with every mini-batch. A device's
/// thread is pinned to a core of its own where there are enough. Tensors that go from device to
/// device are handed over where they lie, as cores share their memory; the scenario's links say
/// when the receiver may have them. Updates are plain gradient descent, or Adam where
/// training.optimizer_state is 2 or more; gradients of replicas and copies are added in the order
/// of their devices. Old versions of the weights are kept as the ledger says.
class CpuBackend : public Backend {
 public:
  ~CpuBackend() override = default;

  /// Valid after a run.
  virtual CpuResults results() const = 0;
};

/// What decides the times of so many cores at work, as a profile's provenance tells it.
std::map<std::string, std::string> cpu_provenance(std::uint32_t busy);

/// Why the cpu backend does not run this network, if so: it is not fp32, or does not end in a head;
/// or no oneDNN is in this build (no device).
std::optional<Diagnostic> check_for_cpu(const Network& network, const Mark& mark);

/// Errors: the model is no network, one that is not fp32, or one that does not end in a head; no
/// oneDNN in this build (no device).
Result<std::unique_ptr<CpuBackend>> cpu_backend(const Scenario& scenario,
                                                const CpuOptions& options);

}  // namespace plumbline
