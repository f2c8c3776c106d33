// What a scenario may not ask of its setup, each thing by itself.
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

/// Sums over the layers must stay far from the end of 64 bits, so they are taken in floating point
/// first.
std::optional<Diagnostic> check_large_sums(const Scenario& scenario,
                                           const std::vector<LayerCosts>& layers);

/// Each device has one place in the pipeline, where the schedule is not made for several.
std::optional<Diagnostic> check_shared_slots(const Scenario& scenario, const PipelineShape& shape,
                                             const std::vector<DeviceId>& devices);

/// Errors: `weights: two` where stages or micro-batches do not allow it.
std::optional<Diagnostic> check_versions(const Scenario& scenario, const TrainingSetup& setup);

/// Errors: `weights: two` with a mini-batch that the replicas of a stage cannot share evenly.
std::optional<Diagnostic> check_accumulation(const Scenario& scenario,
                                             const std::vector<std::uint32_t>& replicas);

/// Errors: gradients or weights that are shared where devices of a stage do not run the same ops at
/// the same time, or weights where a backward is split or begins with the whole forward.
std::optional<Diagnostic> check_sharing(const Scenario& scenario, const TrainingSetup& setup);

/// Errors: more ops than are simulated.
std::optional<Diagnostic> check_many_ops(const Scenario& scenario, const TrainingSetup& setup,
                                         std::int64_t micro_batches);

/// Errors: more bytes on a device than 64 bits hold.
std::optional<Diagnostic> check_memory(const Scenario& scenario, const TrainingSetup& setup);

/// Errors: measured noise of a model whose times have no quartiles.
std::optional<Diagnostic> check_noise(const Scenario& scenario, const TrainingSetup& setup);

}  // namespace plumbline
