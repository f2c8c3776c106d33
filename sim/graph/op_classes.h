// The classes of cost of a run's ops, which are the first in the table of its graph.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "schedules/order/schedule.h"
#include "schedules/stages/stage_costs.h"
#include "sim/graph/op_graph.h"
#include "sim/graph/run_rules.h"

namespace plumbline {

/// The classes of cost of F, B, I, W and U, of their parts, and of moments. Their numbers depend on
/// stages, slices and buckets alone, not on any time. An update counts all devices that hold its
/// stage, also those of copies that are not written.
class OpClasses {
 public:
  /// All arguments must outlive the classes. Requires: a graph that has slots and no cost yet.
  OpClasses(const PipelineShape& shape, const RunRules& options, OpGraph& graph)
      : shape_(shape), options_(options), graph_(graph) {}

  /// Adds all classes, with these costs.
  void add(const StageCosts& given);

  /// The number of classes; other costs of the graph follow behind them.
  std::size_t size() const { return size_; }
  /// The cost class of an F, B, I or W. Each slice of unequal work, and each length of
  /// micro-batches, has its own.
  std::uint32_t of(StageId stage, std::size_t kind, std::uint32_t micro_batch,
                   std::uint32_t copy) const {
    return of_variant(stage, kind, variant(micro_batch, copy));
  }
  /// The cost class of part `part` of an F, B or W that is cut into its stage's buckets. A forward
  /// goes through the buckets from the last to the first.
  std::uint32_t of_part(const Op& op, std::size_t part, std::uint32_t copy) const;
  /// The cost class of a B's recomputed F, and of the B without it. Requires: recompute_early.
  std::uint32_t of_recomputed_forward(StageId stage, std::uint32_t micro_batch,
                                      std::uint32_t copy) const {
    return first_early_class_[place(stage, variant(micro_batch, copy))];
  }
  std::uint32_t of_rest_of_backward(StageId stage, std::uint32_t micro_batch,
                                    std::uint32_t copy) const {
    return of_recomputed_forward(stage, micro_batch, copy) + 1;
  }

  std::uint32_t moment() const { return moment_class_; }
  std::uint32_t overhead() const { return moment_class_ + 1; }

 private:
  /// Adds the slow-down factors of `hold` and returns their index. `parts`, scaled by `work`,
  /// depend on neighbours; `rest` does not.
  std::uint32_t slowdown_of(Duration hold, const std::vector<const std::vector<double>*>& parts,
                            double work, Duration rest);
  /// Adds the classes of a stage's F, B, I and W, with `work` times the usual time.
  void add_op_classes(const StageCosts& costs, std::size_t stage, double work);
  void add_compute_class(Duration time, const StageSlowdown* slow,
                         const std::vector<double> StageSlowdown::*own, Duration again,
                         double work);
  /// Adds the classes of a stage's recomputed F and of its B without it.
  void add_early_classes(const StageCosts& costs, std::uint32_t stage, std::uint32_t variant);
  /// Adds the classes of the parts of a stage's F, B and W; a part is slowed as the whole op is.
  void add_part_classes(const StageCost& cost, std::uint32_t stage, std::uint32_t variant);
  /// Adds the class of a part that takes `time` plus its launch; `whole` is the class of its op.
  void add_part_class(Duration time, const Cost& whole);
  /// The costs with the complete times of updates. For a stage with r devices, each device adds up
  /// the gradients of the r - 1 others. With a sharded optimizer each takes 1/r of the time, apart
  /// from what its group sends before. A stage that keeps old versions copies its weights at every
  /// update, also at the end of a run, when the old version is no longer needed.
  StageCosts with_whole_updates(StageCosts costs) const;

  /// The number of times that an op of a stage may take: one, that of each slice, or that of each
  /// length.
  std::uint32_t variants() const {
    const std::size_t count = lengths_ ? lengths_->kinds.size() : options_.slice_work.size();
    return std::max(1U, static_cast<std::uint32_t>(count));
  }
  std::uint32_t variant(std::uint32_t micro_batch, std::uint32_t copy) const {
    return lengths_ ? lengths_->kind(micro_batch, copy) : micro_batch % variants();
  }
  std::uint32_t of_variant(StageId stage, std::size_t kind, std::uint32_t variant) const {
    if (!lengths_ && options_.slice_work.empty()) return OpGraph::class_of(stage, kind);
    const std::size_t place = std::size_t{variant} * shape_.stages() + stage.value;
    return first_variant_class_ + static_cast<std::uint32_t>(place * OpGraph::kUpdateClass + kind);
  }
  /// The place of a stage's variant in the lists of classes.
  std::size_t place(StageId stage, std::uint32_t variant) const {
    return std::size_t{stage.value} * variants() + variant;
  }
  double work_of(std::uint32_t variant) const {
    return options_.slice_work.empty() ? 1 : options_.slice_work[variant];
  }

  const PipelineShape& shape_;
  const RunRules& options_;
  OpGraph& graph_;
  std::shared_ptr<const LengthCosts> lengths_;    ///< Null: no length differs.
  std::vector<std::uint32_t> first_part_class_;   ///< Ordered by stage, then variant.
  std::vector<std::uint32_t> first_early_class_;  ///< Likewise; empty without recompute_early.
  std::vector<std::uint32_t> buckets_;            ///< The number of buckets of each stage.
  std::uint32_t first_variant_class_ = 0;
  std::size_t size_ = 0;
  std::uint32_t moment_class_ = 0;
};

/// Gives the ops of a graph other costs of its stages: their times, and their slow-downs by
/// neighbours. All else stays, so that no op has to be written again. Requires: a graph that
/// lower() made of `schedule`, under these options but for the copies that are written, without
/// pairs; costs that differ from those of the graph in nothing that transfers and collectives take.
void set_op_times(const Schedule& schedule, const StageCosts& costs, const RunRules& options,
                  OpGraph& graph);

}  // namespace plumbline
