// A scenario between reading and resolving: the values of each section by itself.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "base/diagnostic.h"
#include "sim/scenario/cluster_section.h"
#include "sim/scenario/omissions.h"
#include "sim/scenario/scenario.h"
#include "sim/scenario/transformer_section.h"

namespace plumbline {

/// A scenario and the sections that are not yet worked into it.
struct WrittenScenario {
  Scenario scenario;                             ///< All values that one section alone decides.
  ClusterChoice cluster;                         ///< The cluster section.
  std::optional<TransformerChoice> transformer;  ///< Set for a model given by its config.json.
  DerivedModels* derived = nullptr;              ///< Remembers what is derived from that.
  std::optional<Marked<std::int64_t>> batch;     ///< model.batch.
  std::optional<Marked<std::int64_t>> micro_batch_size;  ///< training.micro_batch_size.
  std::optional<Marked<std::int64_t>> mini_batch_size;   ///< training.mini_batch_size.
  std::optional<LengthChoice> lengths;                   ///< training.micro_batch_lengths.
  std::optional<double> only_length;                     ///< Take this length for all of them.
  TokenKeys tokens;                                      ///< training.tokens and training.sequence.
  std::optional<GoodputSection> goodput;                 ///< The goodput section.
  OptimizerKeys optimizer;                ///< The keys of the optimizer that are given.
  std::optional<Mark> measured_overhead;  ///< `overhead: measured`.
  bool per_op_given = false;              ///< overhead.per_op.
};

/// Decides the values that depend on several sections: devices from GPUs, copies, micro-batches per
/// mini-batch, layers from a config.json, estimated times, measured links. Errors: those of the
/// first pass that finds any.
Result<Scenario> resolve_sections(WrittenScenario written);

}  // namespace plumbline
