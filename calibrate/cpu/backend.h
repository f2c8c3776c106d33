// The cpu backend: every device is a core, and every op runs the real fp32 kernels of its stage's
// layers.
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

/// The losses and weights after a run on the cpu backend.
struct CpuResults {
  /// The mean loss of a sample in each iteration, warm-up included.
  std::vector<double> losses;
  /// The newest weights of each stage, of its first replica in the first copy; layer by layer, in
  /// the layout of CpuStage.
  std::vector<std::vector<float>> parameters;
};

/// Trains the scenario's network on a small data set that repeats with every mini-batch. A device's
/// thread is pinned to a core of its own where there are enough. Tensors between devices are not
/// copied, as cores share their memory. The scenario's links decide when the receiver may use them.
/// Updates are plain gradient descent, or Adam where training.optimizer_state is 2 or more;
/// gradients of replicas and copies are added in the order of their devices. Old versions of the
/// weights are kept as the ledger says.
class CpuBackend : public Backend {
 public:
  ~CpuBackend() override = default;

  /// Valid after a run.
  virtual CpuResults results() const = 0;
};

/// The facts that decide the times of `busy` cores at work, as in a profile's provenance.
std::map<std::string, std::string> cpu_provenance(std::uint32_t busy);

/// The reason why the cpu backend does not run this network, if there is one: it is not fp32; it
/// does not end in a head; this build has no oneDNN (no device).
std::optional<Diagnostic> check_for_cpu(const Network& network, const Mark& mark);

/// Errors: the model is no network, is not fp32, or does not end in a head; this build has no
/// oneDNN (no device).
Result<std::unique_ptr<CpuBackend>> cpu_backend(const Scenario& scenario,
                                                const CpuOptions& options);

}  // namespace plumbline
