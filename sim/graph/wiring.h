// The wiring of a run: the slots of all copies, the channels and rings between them, the classes of
// cost.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/graph/lower.h"
#include "sim/graph/op_classes.h"

namespace plumbline {

/// The static side of lowering. It fills the devices, channels and costs of an OpGraph. It knows
/// the slot of an op, the route of a tensor and the ring of a reduction. Slot q of copy c is slot q
/// x copies + c of the run. It knows no order of ops.
class Wiring {
 public:
  /// The two directions across the boundary between stage s and s + 1.
  enum Direction : std::size_t { up = 0, down = 1 };

  /// One way over a boundary: nodes of class `cost` that hold `first` (and `second`).
  struct Route {
    std::uint32_t first = 0;
    std::uint32_t second = 0;
    std::uint32_t cost = 0;
  };

  /// An all-reduce over the devices of one stage, or a half of it. Flat: one ring in device order;
  /// each member sends to the next. Hierarchical: the rings of each level in turn. They scatter
  /// outwards, reduce at the outermost level and gather inwards; all rings of a phase run at once.
  /// In shard groups: the rings of all groups at once, then for gradients those across the groups.
  /// If a device stands for a group that shares as well, the group's members are on the same ring.
  struct Collective {
    struct Phase {
      std::vector<Route> hops;
      std::uint32_t end = 0;  ///< The resource of the moment at which all hops have ended.
      ActivityKind kind = ActivityKind::all_reduce;  ///< Of its hops.
    };
    ActivityKind kind = ActivityKind::all_reduce;
    std::vector<Phase> phases;
    std::uint32_t begin = 0;  ///< The resource of the moment at which all members are ready.
  };

  /// Fills `graph`. All arguments must outlive the wiring.
  Wiring(const PipelineShape& shape, const StageCosts& costs, const std::vector<DeviceId>& devices,
         const Cluster& cluster, const RunRules& options, OpGraph& graph);

  std::uint32_t slot(StageId stage, std::uint32_t micro_batch, std::uint32_t copy) const {
    return shape_.slot(stage, {micro_batch}) * options_.written_copies() + copy;
  }
  const OpClasses& classes() const { return classes_; }
  /// The cost classes of a pair, an F and a B in either order, that a device runs at the same time.
  /// The pair lasts as long as both compute or as both send within their group, whichever is
  /// longer.
  std::pair<std::uint32_t, std::uint32_t> pair_classes(const Op& first, const Op& second);

  /// Whether the boundary above stage s lies between two devices.
  bool crosses(std::uint32_t boundary) const { return !boundaries_[boundary].ways.empty(); }
  /// Requires: crosses(boundary).
  const Route& route(std::uint32_t boundary, Direction direction, std::uint32_t micro_batch,
                     std::uint32_t copy) const {
    const Boundary& b = boundaries_[boundary];
    return b
        .ways[std::size_t{micro_batch % b.period} * options_.written_copies() + copy][direction];
  }

  /// The collectives that add up a stage's gradients: one per bucket, or one without buckets.
  /// All-reduces, or with a sharded optimizer reduce-scatters. None if one device holds the stage
  /// and no group shares it.
  const std::vector<Collective>& reductions(StageId stage) const {
    return reductions_[stage.value];
  }
  /// The first phases of reductions, for backwards that reduce in their group of copies only. Empty
  /// where all backwards do the same.
  const std::vector<Collective>& scatters(StageId stage) const { return scatters_[stage.value]; }
  /// The collectives that bring weights that other members have updated: one per bucket, or one
  /// without buckets. They stand in the order in which a forward needs them. None if not needed.
  const std::vector<Collective>& gathers(StageId stage) const { return gathers_[stage.value]; }

  /// The all-reduces of a table that several stages hold, one for each written copy.
  struct Tie {
    std::vector<std::uint32_t> stages;
    std::vector<Collective> copies;
  };
  const std::vector<Tie>& ties() const { return ties_; }

  std::uint32_t host() const { return host_; }

 private:
  struct Boundary {
    std::uint32_t period =
        1;  ///< The number of micro-batches after which the same replicas, and lengths, meet again.
    std::vector<std::array<Route, 2>> ways;  ///< Ordered by micro-batch, then copy.
  };

  void add_boundary(std::uint32_t boundary, const StageCosts& costs);
  void add_collectives(std::uint32_t stage, const StageCost& cost);
  void add_tie(const TiedTable& table);
  /// Adds the data that each member sends around its group, as hops beside the innermost rings.
  /// They use the innermost rings' links if these are within a server. They use the outermost
  /// rings' links if the group spans servers. Otherwise they have links of their own.
  void add_group_hops(Collective& collective, const std::vector<std::uint32_t>& members,
                      const GroupRing& sent);
  /// Whether a hop, or every hop that it stands for, is between devices of one server.
  bool within_server(const Route& hop) const;
  /// The number of hops that stay inside a server, in the ring around all copies of this slot's
  /// device. For runs in which one copy stands for all.
  std::uint32_t hops_in_server(std::uint32_t slot) const;
  /// The time of a hop of such a ring inside a server; 0 if no hop stays inside one.
  Duration beside_in_server(std::uint32_t slot, const Route& hop) const;
  Collective flat(ActivityKind kind, const std::vector<std::uint32_t>& members, Bytes bytes);
  /// The collective of a stage whose other members are in copies that are not written: its slowest
  /// hop.
  Collective one_hop(ActivityKind kind, std::uint32_t slot, Bytes bytes);
  Collective hierarchical(ActivityKind kind, Bytes bytes);
  /// The rings of one level: each member sends `sent` in `steps` steps to the next of its group.
  Collective::Phase rings_of_level(ActivityKind kind, std::size_t level, Bytes sent,
                                   std::int64_t steps);
  /// The collective of copies that share in groups: in each group, and for gradients then across
  /// the groups, which all-reduce their shares.
  Collective in_shard_groups(ActivityKind kind, const std::vector<std::uint32_t>& members,
                             Bytes bytes);
  /// The rings over the copies of a stage's device, as rings_of_copies() lists them. If one copy
  /// stands for all: the slowest hop.
  Collective::Phase phase_of_copies(ActivityKind kind, const std::vector<std::uint32_t>& members,
                                    Bytes bytes, std::size_t index);
  Route hop(std::uint32_t from, std::uint32_t to, Bytes sent, std::int64_t steps);
  Route hop(std::uint32_t channel, const Link& link, Bytes sent, std::int64_t steps);
  Route transfer(std::uint32_t from, std::uint32_t to, Bytes bytes);
  /// The index of a transfer's factors by the work of others, or 0. They are those of its time with
  /// `before`, which is in no link's.
  std::uint32_t beside_work(const Link& link, const Path& path, Bytes bytes, Duration before);
  std::uint32_t channel(std::uint32_t from, std::uint32_t to);
  /// What a channel from a device to itself stands for: the ring of copies that are not written (or
  /// those in shard groups), the ring across shard groups, or the ring of the device's group.
  enum class OwnRing : std::uint32_t { copies, across, group };
  std::uint32_t own_channel(std::uint32_t slot, OwnRing ring, const Path& path);
  std::uint32_t cost_class(const Cost& cost);

  const PipelineShape& shape_;
  const Cluster& cluster_;
  const RunRules& options_;
  OpGraph& graph_;
  OpClasses classes_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> channel_index_;
  std::vector<Boundary> boundaries_;  ///< Entry s stands between stage s and s + 1.
  std::vector<std::vector<Collective>> reductions_;
  std::vector<std::vector<Collective>> scatters_;
  std::vector<std::vector<Collective>> gathers_;
  std::vector<Tie> ties_;
  std::vector<std::array<Overlap, 2>> overlaps_;  ///< Entries for the F and the B of each stage.
  std::map<std::array<std::uint32_t, 3>, std::pair<std::uint32_t, std::uint32_t>> pair_classes_;
  std::uint32_t host_ = 0;
};

}  // namespace plumbline
