// What a run is wired of: the slots of all copies, the channels and rings between them, the
// classes of cost.
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

namespace plumbline {

/// The static side of lowering. It fills the devices, channels and costs of an OpGraph and answers
/// where an op runs, what a tensor crosses and along which ring gradients are reduced. Slot q of
/// copy c is slot q x copies + c of the run. It knows no order of ops.
class Wiring {
 public:
  /// The two directions in which the boundary between stage s and s + 1 is crossed.
  enum Direction : std::size_t { up = 0, down = 1 };

  /// One way over a boundary: nodes of class `cost` that hold `first` (and `second`).
  struct Route {
    std::uint32_t first = 0;
    std::uint32_t second = 0;
    std::uint32_t cost = 0;
  };

  /// An all-reduce over the devices of one stage, or a half of it. Flat: one ring in device order,
  /// each member sending to the next. Hierarchical: the rings of each level in turn, which scatter
  /// outwards, reduce at the outermost level and gather inwards; all rings of a phase go at once.
  /// Where a device stands for a group that shares as well, its members are on the same ring.
  struct Collective {
    struct Phase {
      std::vector<Route> hops;
      std::uint32_t end = 0;  ///< The resource of the moment at which all hops have ended.
    };
    ActivityKind kind = ActivityKind::all_reduce;
    std::vector<Phase> phases;
    std::uint32_t begin = 0;  ///< The resource of the moment at which all members are ready.
  };

  /// Fills `graph`; all of them must outlive the wiring.
  Wiring(const PipelineShape& shape, const StageCosts& costs, const std::vector<DeviceId>& devices,
         const Cluster& cluster, const RunRules& options, OpGraph& graph);

  std::uint32_t slot(StageId stage, std::uint32_t micro_batch, std::uint32_t copy) const {
    return shape_.slot(stage, {micro_batch}) * options_.written_copies() + copy;
  }
  /// That of an F, B, I or W; with slices of unequal work each has its own.
  std::uint32_t op_class(StageId stage, std::size_t kind, std::uint32_t micro_batch) const {
    if (options_.slice_work.empty()) return OpGraph::class_of(stage, kind);
    const std::size_t slice = micro_batch % options_.slice_work.size();
    return first_slice_class_ +
           static_cast<std::uint32_t>(
               (slice * shape_.stages() + stage.value) * OpGraph::kUpdateClass + kind);
  }
  /// Those of an F and a B, or a B and an F, that their device runs at the same time: as long as
  /// both compute, or as both send within their group, whichever is longer.
  std::pair<std::uint32_t, std::uint32_t> pair_classes(const Op& first, const Op& second);
  /// The class of part `part` of an F, B or W that is cut into its stage's buckets. A forward goes
  /// through them from the last to the first.
  std::uint32_t part_class(const Op& op, std::size_t part) const;

  /// Whether the boundary above stage s lies between two devices.
  bool crosses(std::uint32_t boundary) const { return !boundaries_[boundary].ways.empty(); }
  /// Requires: crosses(boundary).
  const Route& route(std::uint32_t boundary, Direction direction, std::uint32_t micro_batch,
                     std::uint32_t copy) const {
    const Boundary& b = boundaries_[boundary];
    return b
        .ways[std::size_t{micro_batch % b.period} * options_.written_copies() + copy][direction];
  }

  /// How a stage's gradients are added up, one a bucket (else one): all-reduces, or reduce-scatters
  /// where the optimizer is sharded. None where one device holds them, and no group shares them.
  const std::vector<Collective>& reductions(StageId stage) const {
    return reductions_[stage.value];
  }
  /// How its members get the weights that others have updated, one a bucket (else one), the first
  /// that a forward needs before the others. None where they need not.
  const std::vector<Collective>& gathers(StageId stage) const { return gathers_[stage.value]; }

  std::uint32_t flush_class() const { return flush_class_; }
  std::uint32_t overhead_class() const { return flush_class_ + 1; }
  std::uint32_t moment_class() const { return flush_class_; }
  std::uint32_t host() const { return host_; }

 private:
  struct Boundary {
    std::uint32_t period = 1;  ///< After so many micro-batches the replicas meet again.
    std::vector<std::array<Route, 2>> ways;  ///< By micro-batch, then copy.
  };

  void add_compute_classes(const StageCosts& costs);
  /// The factors of a hold that is `parts`, each at the pace of its neighbours, and `rest`, which
  /// none changes.
  std::uint32_t slowdown_of(Duration hold, const std::vector<const std::vector<double>*>& parts,
                            double work, Duration rest);
  /// Adds the classes of a stage's F, B, I and W, each with `work` times what it takes.
  void add_op_classes(const StageCosts& costs, std::size_t stage, double work);
  void add_compute_class(Duration time, const StageSlowdown* slow,
                         const std::vector<double> StageSlowdown::*own, Duration again,
                         double work);
  /// Adds those of the parts of its F, B and W, each slowed as the whole is.
  void add_part_classes(const StageCost& cost, std::uint32_t stage, std::uint32_t slice);
  /// One that takes `time` besides its launch, of an op of class `whole`.
  void add_part_class(Duration time, const Cost& whole);
  /// The updates of stages with r devices: each adds up the gradients of the r - 1 others, and with
  /// a sharded optimizer takes 1/r of the time, but for what its group sends before. Those of
  /// stages that keep old versions write the new one elsewhere: all of them, though at the end of a
  /// run nobody needs the old one any more.
  StageCosts with_whole_updates(StageCosts costs) const;
  void add_boundary(std::uint32_t boundary, Bytes bytes);
  void add_collectives(std::uint32_t stage, const StageCost& cost);
  /// Puts what each member sends around its group beside the innermost rings, as a part of theirs:
  /// on their links where these are within a server, on those of the outermost rings where the
  /// group is between servers, else on links of its own.
  void add_group_hops(Collective& collective, const std::vector<std::uint32_t>& members,
                      const GroupRing& sent);
  /// Whether a hop, or all that it stands for, is between devices of one server.
  bool within_server(const Route& hop) const;
  /// Of the ring around the copies of a device of which one is written: how many of its hops are.
  std::uint32_t hops_in_server(std::uint32_t slot) const;
  /// What a hop of such a ring takes within a server, if any is.
  Duration beside_in_server(std::uint32_t slot, const Route& hop) const;
  Collective flat(ActivityKind kind, const std::vector<std::uint32_t>& members, Bytes bytes);
  /// That of a stage whose other members are those of copies which are not written: its slowest
  /// hop.
  Collective one_hop(ActivityKind kind, std::uint32_t slot, Bytes bytes);
  Collective hierarchical(ActivityKind kind, Bytes bytes);
  /// The rings of one level: each member sends `sent` in `steps` steps to the next of its group.
  Collective::Phase rings_of_level(std::size_t level, Bytes sent, std::int64_t steps);
  Route hop(std::uint32_t from, std::uint32_t to, Bytes sent, std::int64_t steps);
  Route hop(std::uint32_t channel, const Link& link, Bytes sent, std::int64_t steps);
  Route transfer(std::uint32_t from, std::uint32_t to, Bytes bytes);
  std::uint32_t channel(std::uint32_t from, std::uint32_t to);
  /// From a device to itself, for what stands for several: copies that are not written, its group.
  std::uint32_t own_channel(std::uint32_t slot, bool of_group, const Path& path);
  std::uint32_t cost_class(const Cost& cost);

  const PipelineShape& shape_;
  const Cluster& cluster_;
  const RunRules& options_;
  OpGraph& graph_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> channel_index_;
  std::vector<Boundary> boundaries_;  ///< Entry s stands between stage s and s + 1.
  std::vector<std::vector<Collective>> reductions_;
  std::vector<std::vector<Collective>> gathers_;
  std::vector<std::array<Overlap, 2>> overlaps_;  ///< Of each stage's F and B.
  std::map<std::array<std::uint32_t, 3>, std::pair<std::uint32_t, std::uint32_t>> pair_classes_;
  std::vector<std::uint32_t> first_part_class_;  ///< By stage, then slice.
  std::vector<std::uint32_t> buckets_;           ///< Of each stage, how many.
  std::uint32_t first_slice_class_ = 0;
  std::size_t first_transfer_class_ = 0;
  std::uint32_t flush_class_ = 0;
  std::uint32_t host_ = 0;
};

}  // namespace plumbline
