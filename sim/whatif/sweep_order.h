// Which rows of a sweep are told, and which of them is best.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/whatif/sweep_condition.h"
#include "sim/whatif/sweep_result.h"

namespace plumbline {

enum class Objective {
  throughput,  ///< Most samples per second; a run that takes no time has more than any other.
  per_device,  ///< Most samples per second for each device that holds a stage; the same for those.
  memory,      ///< The smallest peak.
  bubble,      ///< The smallest share of idle time, in the steady state where there is one.
};

/// "throughput".
std::string_view name(Objective objective);

/// Errors: no objective of this name.
Result<Objective> parse_objective(const std::string& name);

/// What of a sweep is told, in which order.
struct SweepSelection {
  Objective objective = Objective::throughput;
  std::vector<Condition> where;  ///< All of them.
  bool pareto = false;
  std::size_t top = 0;  ///< 0 = all.
};

/// The feasible rows that no other feasible row beats: with at least its throughput, at most its
/// peak memory, and one of them better. Those that are equal in both stay.
std::vector<SweepRow> pareto(std::vector<SweepRow> rows);

/// The rows that are told: the feasible ones best first, then the others by their numbers. What is
/// equal by the objective goes by memory, then throughput, then number of the point.
std::vector<SweepRow> select(std::vector<SweepRow> rows, const SweepSelection& selection);

}  // namespace plumbline
