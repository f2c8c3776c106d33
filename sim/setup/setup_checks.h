// Checks of a setup against its scenario, one function per error.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/diagnostic.h"
#include "sim/scenario/scenario.h"
#include "sim/setup/training_setup.h"

namespace plumbline {

/// Errors: sums over the layers that come close to the limit of 64 bits. The check takes the sums
/// in floating point.
std::optional<Diagnostic> check_large_sums(const Scenario& scenario,
                                           const std::vector<LayerCosts>& layers);

/// Errors: a device with several places in the pipeline, unless the schedule is made for that.
std::optional<Diagnostic> check_shared_slots(const Scenario& scenario, const PipelineShape& shape,
                                             const std::vector<DeviceId>& devices);

/// Errors: `weights: two` with stages or micro-batches that do not allow it.
std::optional<Diagnostic> check_versions(const Scenario& scenario, const TrainingSetup& setup);

/// Errors: `weights: two` with a mini-batch that the replicas of a stage cannot share evenly.
std::optional<Diagnostic> check_accumulation(const Scenario& scenario,
                                             const std::vector<std::uint32_t>& replicas);

/// Errors: shared gradients or weights where the devices of a stage do not run the same ops at the
/// same time. Also shared weights where a backward is split or begins with the whole forward.
std::optional<Diagnostic> check_sharing(const Scenario& scenario, const TrainingSetup& setup);

/// Errors: `recompute_early` with a schedule whose backwards cannot begin before their gradient is
/// there. Adds a note if nothing is recomputed.
std::optional<Diagnostic> check_recompute_early(const Scenario& scenario, TrainingSetup& setup);

/// Errors: more ops than are simulated.
std::optional<Diagnostic> check_many_ops(const Scenario& scenario, const TrainingSetup& setup,
                                         std::int64_t micro_batches);

/// Errors: more bytes on a device than 64 bits hold.
std::optional<Diagnostic> check_memory(const Scenario& scenario, const TrainingSetup& setup);

/// Errors: measured noise of a model whose times have no quartiles.
std::optional<Diagnostic> check_noise(const Scenario& scenario, const TrainingSetup& setup);

}  // namespace plumbline
