// The activations that a schedule does not keep: schedule.recompute, recompute_layers,
// recompute_modules, recompute_early, offload.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "base/diagnostic.h"
#include "models/import/recompute_modules.h"
#include "models/profile/profile.h"
#include "schedules/stages/partition.h"
#include "schedules/stages/recompute.h"

namespace plumbline {

struct ClusterChoice;
struct Scenario;
struct TransformerChoice;
class SectionReader;

/// The choice to recompute as few layers of each stage as its devices' memory allows.
struct FewestLayers {};

/// The number of layers that recompute, counted from a stage's first layer: all, as few as fit, one
/// number for every stage (all layers of a stage with fewer), or a number for each stage.
using RecomputedLayers =
    std::variant<std::monostate, FewestLayers, std::int64_t, std::vector<std::int64_t>>;

/// Recomputation as the user wrote it.
struct RecomputeChoice {
  Recompute kind = Recompute::none;
  Mark mark;
  RecomputedLayers layers;  ///< Other than all only if each layer is recomputed by itself.
  Mark layers_mark;
  std::optional<RecomputeModules> modules;  ///< What `selective` makes again, if chosen.
  Mark modules_mark;
  bool early = false;  ///< Each F is recomputed before the gradient of its B is there.
  Mark early_mark;

  bool is_early() const { return early && kind == Recompute::full; }
  bool leaves_some() const { return !std::holds_alternative<std::monostate>(layers); }
  bool as_few_as_fit() const { return std::holds_alternative<FewestLayers>(layers); }
};

/// Reads the four keys of the schedule section.
RecomputeChoice read_recomputation(SectionReader& schedule);

/// Tells a model that is known by its shape which modules selective recomputation runs again; adds
/// a note if nothing does. Errors: chosen modules of another model (null).
std::optional<Diagnostic> choose_modules(const RecomputeChoice& choice,
                                         TransformerChoice* transformer,
                                         std::vector<std::string>& notes);

/// Resolves recomputation that layers define themselves: frameworks recompute blocks, neither the
/// embedding nor the head; selective recomputation is a part of each layer. Errors: no layer has
/// such a part.
std::optional<Diagnostic> resolve_recomputation(Scenario& scenario);

/// Offloads the share of activations that the schedule says, with a note on what that takes.
/// Errors: recomputation that keeps nothing but inputs; a host link that is not known. Requires: no
/// layer waits for an estimate; micro_batch_size is resolved.
std::optional<Diagnostic> offload_activations(Scenario& scenario, const ClusterChoice& cluster);

/// The number of recomputed layers of each stage; empty if all layers are recomputed, or none.
/// Requires: a choice that is resolved. Errors: numbers that do not fit the stages.
Result<std::vector<std::uint32_t>> recomputed_layers(const RecomputeChoice& choice,
                                                     const Partition& partition);

/// Makes the layers after the first `recomputed` of each stage keep all their activations. Layers
/// that nothing recomputes do not count: the embedding of a transformer, and its head.
void keep_others(const Partition& partition, const std::vector<std::uint32_t>& recomputed,
                 std::vector<LayerCosts>& layers);

}  // namespace plumbline
