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

/// Where plans are searched. Devices stand in a row of positions, counted from the END of the
/// pipeline; `group` positions in turn share a network card. A stage takes positions in turn; the
/// stage in front of it begins right there or, leaving devices spare, at the next group.
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
    std::uint32_t last = 0;  ///< The frontier behind it.
    std::uint32_t replicas = 1;
    std::uint32_t position = 0;  ///< Its lowest, counted from the end of the pipeline.
  };
  double period_ns = 0;  ///< By formula_time; the last bits may differ.
  double traffic = 0;
  std::vector<Stage> stages;

  std::uint32_t devices() const;
};

/// How far to look.
struct SearchBounds {
  double period_ns = 0;  ///< Plans above are not looked at.
  /// Among all plans up to the bound the one with the fewest devices, then stages, then traffic,
  /// then the first cut, whatever its period; otherwise the least period.
  bool fewest = false;
  /// A partial plan is also left out where another one needs no more memory and devices, and is
  /// longer by at most this share. 0 = nothing that could win is lost.
  double slack = 0;
  /// Of all partial plans with the same stage in front of them so many are kept: the shortest.
  std::size_t max_alternatives = std::numeric_limits<std::size_t>::max();
  /// Comparisons of partial plans after which a search gives up: some 200 million a second.
  std::uint64_t max_comparisons = std::numeric_limits<std::uint64_t>::max();
};

/// How a search ended.
enum class SearchEnd {
  complete,
  cancelled,  ///< `progress` gave up.
  too_large,  ///< It would need more than kMaxLabels partial plans, or comparisons of them.
};

/// The most partial plans that are kept: some 800 MB.
inline constexpr std::size_t kMaxLabels = 10'000'000;

/// What a search found.
struct SearchOutcome {
  std::vector<FoundPlan> plans;  ///< Empty unless complete.
  SearchEnd end = SearchEnd::complete;
};

/// For each number of devices and of replicas of the first stage the plan with the least period (of
/// all plans up to the bound: exact); with `fewest` exactly one plan. Sorted by period, devices,
/// stages, traffic, cuts. Empty where no plan is within the bound.
/// The state is a frontier, the position and replicas of the stage in front of it; of the plans for
/// what lies behind only those are kept that no other one beats in period, in bytes on the card of
/// the group that the front stage shares, in devices, in room for inputs and, with a flush, in the
/// three values of its FlushChain. All only grow worse towards the front, so that nothing that
/// could win is lost (but for windows, which fewer devices make smaller: where a schedule has such,
/// a flush compares plans of as many devices only). Skipped is what exceeds the
/// bound already, or leaves too few devices for the work in front. Without a bound and with
/// `fewest` no time matters. A stage computes something, unless it is the whole model. Requires: at
/// least two frontiers.
SearchOutcome search_plans(const SearchSpace& space, const SearchBounds& bounds,
                           const std::function<bool(double)>& progress);

}  // namespace plumbline
