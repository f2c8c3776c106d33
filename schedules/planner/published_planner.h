// The recurrence of PipeDream's own optimizer, level by level.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "models/hardware/cluster.h"
#include "schedules/planner/frontier_sums.h"
#include "schedules/planner/published_frontiers.h"

namespace plumbline {

/// One level of the cluster in the recurrence.
struct PublishedLevel {
  std::uint32_t machines = 1;
  double bandwidth = 0;  ///< Bytes per second; infinite where unlimited.
};

/// The levels of `cluster`, each reduced so that at most `devices` devices are used.
std::vector<PublishedLevel> published_levels(const Cluster& cluster, std::uint32_t devices);

/// A plan of the recurrence: stages in the order of the pipeline.
struct PublishedPlan {
  struct Stage {
    std::uint32_t last = 0;  ///< The state behind the stage.
    std::vector<DeviceId> devices;
  };
  double seconds = 0;  ///< The objective, for one micro-batch.
  std::vector<Stage> stages;
};

/// With C, P, O the sums of a state (time, parameters, output), j after k after i, m of M machines,
/// B the level's bandwidth and n' the machines of the level below (1 at the innermost):
///   T(i, j, m) = (comp(i, j) + 4 (m - 1) par(i, j) / (B m) / n') / m
///   A(i, j, m) = min(T(i, j, m), min over k, m' < m of max(A(i, k, m - m'),
///                  (comp(k, j) + 4 (m' - 1) par(k, j) / (B m')) / m',
///                  2 O_k / (B m'), 2 O_j / (B m') unless j is the last state))
/// (Narayanan et al. 2019, section 3.1, as their program computes it), where comp is a difference
/// of C at the innermost level and A(i, j, M) of the level below elsewhere. Transfers count only
/// with `activation_transfers`. As in the original, a split k inside a lower level's component may
/// be a state that does not contain the component's start. Such stages are cut at the union of
/// both. Ties: no split, then the earlier state, then fewer machines behind it. Every k whose
/// compute alone exceeds the best so far is skipped, which is exact: A(i, j, m) >= (C_j - C_i) /
/// devices. Nothing if `progress` gave up.
std::optional<PublishedPlan> published_plan(const PublishedFrontiers& states,
                                            const FrontierSums& sums,
                                            const std::vector<PublishedLevel>& levels,
                                            bool straight, bool activation_transfers,
                                            const std::function<bool(double)>& progress);

/// The time of data parallelism, as the original prints it, level by level from t = C:
/// t <- (t + 4 (n - 1) P / (B n) / n') / n. In seconds for one micro-batch.
double published_data_parallel(Duration compute, Bytes parameters,
                               const std::vector<PublishedLevel>& levels);

}  // namespace plumbline
