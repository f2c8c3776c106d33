// What each stage costs in time and bytes, summed from its layers.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/profile/profile.h"
#include "schedules/stages/partition.h"
#include "schedules/stages/recompute.h"
#include "schedules/stages/slowdown.h"

namespace plumbline {

/// What a device sends around the group that it stands for.
struct GroupRing {
  Duration time{};
  Bytes bytes{};
};

/// Some layers of a stage whose gradients are reduced by themselves, as soon as its last backward
/// has made them, and whose weights may be gathered by themselves before its first forward.
struct Bucket {
  std::uint32_t layers = 0;
  Duration forward{};
  Duration backward{};            ///< The full backward.
  Duration backward_weight{};     ///< W.
  Duration again{};               ///< What making activations again takes.
  Bytes parameters{};             ///< Those that other devices hold as well.
  Bytes gathered{};               ///< Of them, what devices of its copies exchange,
  Bytes gradients{};              ///< Of the parameters,
  Bytes reduced{};                ///< and of those what devices of its copies exchange.
  GroupRing gathered_in_group{};  ///< The rest of each, where that is no part of the update.
  GroupRing reduced_in_group{};
};

/// What of a stage's passes is sending to others of its devices' groups, in seconds.
struct SentTimes {
  double forward = 0;
  double backward = 0;
  double backward_input = 0;
  double backward_weight = 0;
  double again = 0;
};

/// Of an F or a B, what the other one of a pair can hide, and what it can hide of that: in seconds.
struct Overlap {
  double sending = 0;    ///< Within its group, that its own computing does not hide.
  double computing = 0;  ///< That hides nothing.

  friend Overlap operator+(Overlap a, Overlap b) {
    return {a.sending + b.sending, a.computing + b.computing};
  }
};

/// One stage, for one micro-batch.
struct StageCost {
  Duration forward{};
  Duration backward{};        ///< The full backward.
  Duration backward_input{};  ///< I: as the layers give it, the whole backward of those that do not
                              ///< split.
  Duration backward_weight{};  ///< W.
  Duration again{};            ///< What making activations again takes.
  Duration update{};
  Duration update_in_group{};  ///< Of the update, what is sending within the group,
  Duration update_before{};    ///< and of that what comes before replicas and copies share it.
  SentTimes sent;              ///< Of the times before.
  Overlap forward_overlap{};   ///< The same.
  Overlap backward_overlap{};  ///< Of the full backward.
  Overlap recompute_overlap{};
  Bytes parameters;
  Bytes stepped;       ///< Of the parameters; others of its group step the rest.
  Bytes gradients;     ///< Of the parameters.
  Bytes gathered;      ///< Of the parameters, what devices of its copies exchange,
  Bytes reduced;       ///< and of the gradients: the rest is for others of its group.
  Bytes activation;    ///< Kept from F until B (W where split).
  Checkpoints within;  ///< Of its layers but those whose output only later stages read.
  /// In the order in which the backward makes them; what they take adds up to the stage's. Empty =
  /// its gradients are reduced as one piece, after the last backward.
  std::vector<Bucket> buckets;
};

/// The output of one layer that a later stage consumes.
struct CrossingTensor {
  std::uint32_t made = 0;        ///< Stage that makes it.
  std::uint32_t first_used = 0;  ///< First stage that consumes it; >= made.
  std::uint32_t last_used = 0;   ///< Last stage that consumes it; > made.
  Bytes bytes;
  /// Of the layer, where it depends on who consumes this what checkpoints keep of it.
  std::optional<Bytes> activation;
  bool is_kept = false;  ///< With the layer's activation, whatever else is made again.
};

/// The costs of all stages. It knows no engine and no order of ops.
struct StageCosts {
  std::vector<StageCost> stages;
  std::vector<CrossingTensor> tensors;
  std::vector<StageSlowdown> slowdowns;  ///< Of each stage; empty = no neighbour matters.
  /// The factors of an update while 0, 1, ... neighbours update as well; empty = that is nothing.
  std::vector<double> updates_at_once;

  /// What stage s sends to stage s + 1 for one micro-batch: each tensor made in a stage <= s and
  /// consumed in a stage > s, once. The gradients carry as many bytes the other way. 0 behind the
  /// last stage.
  Bytes cut_bytes(std::uint32_t s) const { return cut_bytes_[s]; }

  /// The part of cut_bytes(last) that is made in stages first..last.
  Bytes crossing_made_in(std::uint32_t first, std::uint32_t last) const;
  /// The part of that which none of these stages consumes, and no layer keeps by itself.
  Bytes only_crossing_made_in(std::uint32_t first, std::uint32_t last) const;
  /// What stage s holds where each layer is run again by itself, on a device that holds the stages
  /// up to `last` as well.
  Checkpoints checkpoints(std::uint32_t s, std::uint32_t last) const;

  friend StageCosts stage_costs(const LayerGraph& graph, const std::vector<LayerCosts>& costs,
                                const Partition& partition, double gradient_width);

 private:
  std::vector<Bytes> cut_bytes_;
};

/// The gradients of parameters, `width` bytes for each byte of them; whole bytes, rounded up. At
/// most the 10^18 B that a model may have in all, so that sums of them stay far from overflow.
Bytes gradient_bytes(Bytes parameters, double width);

/// Sums the costs of the layers over the stages of `partition`.
/// Requires: one entry of `costs` for each layer of the graph.
StageCosts stage_costs(const LayerGraph& graph, const std::vector<LayerCosts>& costs,
                       const Partition& partition, double gradient_width = 1);

}  // namespace plumbline
