// The numbers of recomputed layers that may fit, by the lower bounds of the memory.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/profile/profile.h"
#include "sim/planning/memory_floor.h"
#include "sim/scenario/scenario.h"
#include "sim/setup/training_setup.h"

namespace plumbline {

/// Numbers of recomputed layers, one per stage.
using RecomputeCounts = std::vector<std::int64_t>;

/// A group of stages connected by shared devices. Their numbers are chosen together.
struct Sharers {
  std::vector<std::uint32_t> stages;
  std::vector<std::uint32_t> slots;   ///< Slots of the schedule.
  std::int64_t layers = 0;            ///< The sum over all of them.
  std::vector<std::uint32_t> evenly;  ///< The stage of each layer, equal shares first.
  bool is_small = true;  ///< Whether all numbers are tried; else only equal shares of layers.
};

/// The choices of numbers for each group of stages. Of these, those are left out with which a
/// device lacks memory by its floor (MemoryFloor), whatever the times of the ops are.
class RecomputationChoices {
 public:
  /// `none`: the setup of `scenario`, which recomputes no layer; it must outlive the choices.
  /// Requires: the devices' memory is known.
  RecomputationChoices(const Scenario& scenario, const TrainingSetup& none);

  const std::vector<Sharers>& groups() const { return groups_; }
  /// The numbers of all layers, one per stage.
  const RecomputeCounts& all_layers() const { return layers_; }

  /// The numbers of a group that add up to `sum` and may fit, the fastest first. They are found
  /// once.
  const std::vector<RecomputeCounts>& of(std::size_t group, std::int64_t sum);
  /// The least sum from `from` on with numbers that may fit; nothing if there is none.
  std::optional<std::int64_t> least_sum(std::size_t group, std::int64_t from);
  /// A lower bound of that sum for any `from`, which costs less. It may be above all layers.
  std::int64_t least_by_floor(std::size_t group) const;
  /// Whether the group may fit with any numbers.
  bool may_fit(std::size_t group) const;
  /// The time in which the `sum` layers of a group are recomputed for one micro-batch, whichever
  /// they are: a lower bound.
  Duration least_time(std::size_t group, std::int64_t sum) const;

 private:
  /// Whether the group may fit with the numbers that are set in `counts`.
  bool may_fit(const Sharers& group, const RecomputeCounts& counts) const;
  void add_equal_shares(const Sharers& group, std::int64_t sum, RecomputeCounts& counts,
                        std::vector<RecomputeCounts>& found) const;
  void add_all(const Sharers& group, std::size_t place, std::int64_t sum, RecomputeCounts& counts,
               std::vector<RecomputeCounts>& found) const;
  /// The time of the recompute of one micro-batch.
  Duration time_of(const Sharers& group, const RecomputeCounts& counts) const;

  const Partition& partition_;
  std::vector<Bytes> memory_;  ///< What the device of each slot of the schedule has.
  std::vector<Sharers> groups_;
  std::vector<LayerCosts> costs_;
  MemoryFloor floor_;
  RecomputeCounts layers_;
  /// Choices by group and sum.
  std::vector<std::vector<std::optional<std::vector<RecomputeCounts>>>> choices_;
};

}  // namespace plumbline
