// Dynamic programming over frontiers and devices for the calibrated cost model.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "models/hardware/cluster.h"
#include "schedules/planner/frontier_sums.h"
#include "schedules/planner/residency.h"

namespace plumbline {

/// The space in which plans are searched. Devices stand in a row of positions, counted from the END
/// of the pipeline. Every `group` consecutive positions share a network card. A stage takes
/// consecutive positions. The stage in front of it begins at the next position, or at the next
/// group, which leaves devices unused.
struct SearchSpace {
  const Frontiers* frontiers = nullptr;  ///< From "nothing" to "all".
  const FrontierSums* sums = nullptr;
  const FrontierCheckpoints* checkpoints = nullptr;
  std::uint32_t positions = 1;
  std::uint32_t devices = 1;  ///< The most that may be used; <= positions.
  std::uint32_t group = 1;
  Link inner, outer;  ///< Within a group, and between groups.
  std::optional<Bytes> memory;
  double optimizer_state = 0;
  double gradient_width = 1;
  Duration per_op{};  ///< Added to F, B and U of each stage.
  std::optional<std::uint32_t> stages_at_most;
  bool straight = false;
  bool activation_transfers = true;
  Residency residency;  ///< Replica counts that it does not take are left out.
};

/// A plan as positions and frontiers, stages in the order of the pipeline.
struct FoundPlan {
  struct Stage {
    std::uint32_t last = 0;  ///< The frontier behind the stage.
    std::uint32_t replicas = 1;
    std::uint32_t position = 0;  ///< Its lowest position, counted from the end of the pipeline.
  };
  double period_ns = 0;  ///< By formula_time; the last bits may differ.
  double traffic = 0;
  std::vector<Stage> stages;

  std::uint32_t devices() const;
};

/// The bounds of a search.
struct SearchBounds {
  double period_ns = 0;  ///< Plans with a longer period are skipped.
  /// Find the plan within the bound with the fewest devices, then stages, then traffic, then the
  /// earliest cut, whatever its period. Otherwise find the least period.
  bool fewest = false;
  /// A partial plan is also dropped if another one needs no more memory and devices, and is longer
  /// by at most this share. 0 = no possible winner is lost.
  double slack = 0;
  /// The number of partial plans kept for the same stage in front: the shortest ones.
  std::size_t max_alternatives = std::numeric_limits<std::size_t>::max();
  /// The number of comparisons of partial plans after which a search gives up; about 200 million
  /// per second.
  std::uint64_t max_comparisons = std::numeric_limits<std::uint64_t>::max();
};

/// How a search ended.
enum class SearchEnd {
  complete,
  cancelled,  ///< `progress` gave up.
  too_large,  ///< It needs more partial plans than kMaxLabels, or more comparisons.
};

/// The most partial plans that are kept: about 800 MB.
inline constexpr std::size_t kMaxLabels = 10'000'000;

/// The result of a search.
struct SearchOutcome {
  std::vector<FoundPlan> plans;  ///< Empty unless complete.
  SearchEnd end = SearchEnd::complete;
};

/// The plan with the least period for each number of devices and of replicas of the first stage;
/// exact among all plans within the bound. With `fewest`, exactly one plan. Sorted by period,
/// devices, stages, traffic, cuts. Empty if no plan is within the bound. A state is a frontier, and
/// the position and replicas of the stage in front of it. Of the partial plans behind it, only
/// those are kept that no other one beats in period, in bytes on the card of the group that the
/// front stage shares, in devices, in room for inputs and, with a flush, in the values of its
/// FlushChain. All these only grow worse towards the front, so no possible winner is lost. Windows
/// are the exception, as fewer devices make them smaller: for schedules with such windows, a flush
/// compares only plans on as many devices. Partial plans that exceed the bound, or leave too few
/// devices for the work in front, are skipped. Without a bound and with `fewest`, no time matters.
/// Every stage computes something, unless it is the whole model. Requires: at least two frontiers.
SearchOutcome search_plans(const SearchSpace& space, const SearchBounds& bounds,
                           const std::function<bool(double)>& progress);

}  // namespace plumbline
