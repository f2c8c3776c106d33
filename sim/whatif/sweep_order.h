// The selection and the order of a sweep's reported rows.
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
  per_device,  ///< Most samples per second and device that holds a stage; a run of no time is best.
  memory,      ///< The smallest peak.
  bubble,      ///< The smallest share of idle time, in the steady state where there is one.
};

/// "throughput".
std::string_view name(Objective objective);

/// The objective of this name. Errors: no such objective.
Result<Objective> parse_objective(const std::string& name);

/// The rows of a sweep that are reported, and their order.
struct SweepSelection {
  Objective objective = Objective::throughput;
  std::vector<Condition> where;  ///< Conditions; all must hold.
  bool pareto = false;
  std::size_t top = 0;  ///< 0 = all.
};

/// The feasible rows that no other feasible row beats. A row beats another with at least its
/// throughput, at most its peak memory, and one of them better. Rows that are equal in both stay.
std::vector<SweepRow> pareto(std::vector<SweepRow> rows);

/// The reported rows: the feasible ones best first, then the others by their points. Rows that are
/// equal by the objective are ordered by memory, then throughput, then point.
std::vector<SweepRow> select(std::vector<SweepRow> rows, const SweepSelection& selection);

}  // namespace plumbline
