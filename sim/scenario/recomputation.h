// Which layers a schedule runs again: schedule.recompute and schedule.recompute_layers.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "base/diagnostic.h"
#include "models/profile/profile.h"
#include "schedules/stages/partition.h"
#include "schedules/stages/recompute.h"

namespace plumbline {

class SectionReader;

/// As few layers of each stage as its devices' memory needs.
struct FewestLayers {};

/// How many layers of a stage make activations again, from its first one on: all, as few as fit, so
/// many of each stage (of a stage with fewer all), or a number for each stage.
using RecomputedLayers =
    std::variant<std::monostate, FewestLayers, std::int64_t, std::vector<std::int64_t>>;

/// As the user wrote it.
struct RecomputeChoice {
  Recompute kind = Recompute::none;
  Mark mark;
  RecomputedLayers layers;  ///< Other than all only where each layer is run again by itself.
  Mark layers_mark;

  bool leaves_some() const { return !std::holds_alternative<std::monostate>(layers); }
  bool as_few_as_fit() const { return std::holds_alternative<FewestLayers>(layers); }
};

/// Reads both keys of the schedule section.
RecomputeChoice read_recomputation(SectionReader& schedule);

/// The number of each stage; none where all layers are run again, or none is.
/// Requires: a choice that is no longer open. Errors: numbers that do not fit the stages.
Result<std::vector<std::uint32_t>> recomputed_layers(const RecomputeChoice& choice,
                                                     const Partition& partition);

/// Makes all layers behind the first `recomputed` of each stage keep all that they have.
void keep_others(const Partition& partition, const std::vector<std::uint32_t>& recomputed,
                 std::vector<LayerCosts>& layers);

}  // namespace plumbline
