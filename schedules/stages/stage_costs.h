// The costs of each stage in time and bytes, summed over its layers.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "models/profile/profile.h"
#include "schedules/stages/partition.h"
#include "schedules/stages/recompute.h"
#include "schedules/stages/slowdown.h"

namespace plumbline {

/// The data that a device sends around the group that it stands for.
struct GroupRing {
  Duration time{};
  Bytes bytes{};
};

/// Some layers of a stage. Their gradients are reduced separately, as soon as the stage's last
/// backward has made them. Their weights may be gathered separately before its first forward.
struct Bucket {
  std::uint32_t layers = 0;
  Duration forward{};
  Duration backward{};            ///< The full backward.
  Duration backward_weight{};     ///< W.
  Duration again{};               ///< Recomputing activations.
  Bytes parameters{};             ///< Parameters that other devices hold too.
  Bytes gathered{};               ///< The part of them that devices of its copies exchange.
  Bytes gradients{};              ///< Gradients of `parameters`.
  Bytes reduced{};                ///< The part of them that devices of its copies exchange.
  GroupRing gathered_in_group{};  ///< The rest of each, sent in the group outside the update.
  GroupRing reduced_in_group{};
};

/// The time in which a stage's passes send to other devices of their groups, in seconds.
struct SentTimes {
  double forward = 0;
  double backward = 0;
  double backward_input = 0;
  double backward_weight = 0;
  double again = 0;
};

/// Overlap of an F or a B with the other op of its pair, in seconds.
struct Overlap {
  double sending = 0;    ///< Sending within its group that its own computing does not hide.
  double computing = 0;  ///< Computing that hides no sending of its own.

  friend Overlap operator+(Overlap a, Overlap b) {
    return {a.sending + b.sending, a.computing + b.computing};
  }
};

/// One stage, for one micro-batch.
struct StageCost {
  Duration forward{};
  Duration backward{};        ///< The full backward.
  Duration backward_input{};  ///< I: as the layers give it; for layers that do not split, the whole
                              ///< backward.
  Duration backward_weight{};  ///< W.
  Duration again{};            ///< Recomputing activations.
  Duration update{};
  Duration update_in_group{};  ///< The part of the update that sends within the group.
  Duration update_before{};    ///< The part of that before replicas and copies share the update.
  SentTimes sent;              ///< Parts of the times above.
  Overlap forward_overlap{};   ///< Part of the forward.
  Overlap backward_overlap{};  ///< Part of the full backward.
  Overlap recompute_overlap{};
  Bytes parameters;
  Bytes stepped;       ///< Parameters that it steps; others of its group step the rest.
  Bytes gradients;     ///< Gradients of `parameters`.
  Bytes gathered;      ///< Parameters that devices of its copies exchange.
  Bytes reduced;       ///< The same of gradients; others of its group exchange the rest.
  Bytes activation;    ///< Kept from F until B (W where split).
  Bytes temporary;     ///< The most that the backward of one of its layers holds besides.
  Checkpoints within;  ///< Without layers whose output only later stages read.
  /// Buckets in the order in which the backward makes them; their times add up to the stage's.
  /// Empty = its gradients are reduced as one piece, after the last backward.
  std::vector<Bucket> buckets;
};

/// The output of one layer that a later stage consumes.
struct CrossingTensor {
  std::uint32_t made = 0;        ///< Stage that makes it.
  std::uint32_t first_used = 0;  ///< First stage that consumes it; >= made.
  std::uint32_t last_used = 0;   ///< Last stage that consumes it; > made.
  Bytes bytes;
  /// The layer's activation, where the part that checkpoints keep depends on the consumers; else
  /// nothing.
  std::optional<Bytes> activation;
  bool is_kept = false;  ///< Kept with the layer's activation, whatever else is recomputed.
};

/// A table that several stages on different devices hold. They add up its gradients before they
/// update.
struct TiedTable {
  std::vector<std::uint32_t> stages;  ///< Ascending; two or more.
  Bytes gradients{};                  ///< On each of their devices.
};

struct LengthCosts;

/// The costs of all stages. It knows no engine and no order of ops.
struct StageCosts {
  std::vector<StageCost> stages;
  std::vector<CrossingTensor> tensors;
  std::vector<StageSlowdown> slowdowns;  ///< One per stage; empty = no neighbour matters.
  /// The factors of an update while 0, 1, ... neighbours update too; empty = they do not matter.
  std::vector<double> updates_at_once;
  std::vector<TiedTable> tied;
  /// The costs of micro-batches whose lengths differ, in whose mean those above are; null: all
  /// micro-batches are alike.
  std::shared_ptr<const LengthCosts> lengths;

  /// The bytes that stage s sends to stage s + 1 for one micro-batch: each tensor made in a stage
  /// <= s and consumed in a stage > s, once. The gradients are as many bytes the other way. 0 for
  /// the last stage.
  Bytes cut_bytes(std::uint32_t s) const { return cut_bytes_[s]; }

  /// The part of cut_bytes(last) that is made in stages first..last.
  Bytes crossing_made_in(std::uint32_t first, std::uint32_t last) const;
  /// The part of that which none of these stages consumes and no layer's activation keeps.
  Bytes only_crossing_made_in(std::uint32_t first, std::uint32_t last) const;
  /// The bytes that stage s holds where each layer is recomputed separately, on a device that also
  /// holds the stages up to `last`.
  Checkpoints checkpoints(std::uint32_t s, std::uint32_t last) const;

  friend StageCosts stage_costs(const LayerGraph& graph, const std::vector<LayerCosts>& costs,
                                const Partition& partition, double gradient_width);

 private:
  std::vector<Bytes> cut_bytes_;
};

/// The costs of micro-batches that are not all of one length.
struct LengthCosts {
  std::vector<StageCosts> kinds;  ///< One entry per length, ascending by length.
  /// The kind of each micro-batch of a mini-batch; copy after copy where copies of the pipeline
  /// differ.
  std::vector<std::uint32_t> kind_of;
  std::uint32_t micro_batches = 1;  ///< Of a mini-batch, in one copy.

  /// `micro_batch` may count through several mini-batches.
  std::uint32_t kind(std::uint32_t micro_batch, std::uint32_t copy) const {
    const std::size_t place = std::size_t{copy} * micro_batches + micro_batch % micro_batches;
    return kind_of[place % kind_of.size()];
  }
  bool differs_by_copy() const {
    for (std::size_t i = micro_batches; i < kind_of.size(); ++i) {
      if (kind_of[i] != kind_of[i - micro_batches]) return true;
    }
    return false;
  }
};

/// The bytes of the gradients of parameters, `width` bytes for each byte of them, rounded up. At
/// most 10^18 B, the limit of a whole model, so that sums stay far from overflow.
Bytes gradient_bytes(Bytes parameters, double width);

/// Whether a layer stands on the devices of the layer whose table it uses, in whatever order, so
/// that it needs no copy (as in DualPipe: DeepSeek-AI 2024, section 3.2.1).
bool shares_table(const LayerGraph& graph, const Partition& partition, LayerId layer);

/// Sums the costs of the layers over the stages of `partition`.
/// Requires: one entry of `costs` for each layer of the graph.
StageCosts stage_costs(const LayerGraph& graph, const std::vector<LayerCosts>& costs,
                       const Partition& partition, double gradient_width = 1);

}  // namespace plumbline
