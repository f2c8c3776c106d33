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
  cost,        ///< The least money; rows without a cost come last.
  days,        ///< The fewest days; rows without them come last.
  energy,      ///< The least energy; rows without one come last.
  goodput,     ///< Most samples per second that failures leave; rows without it come last.
};

/// The two numbers of a Pareto front.
enum class Front {
  none,    ///< All rows stay.
  memory,  ///< Throughput against peak memory.
  cost,    ///< Cost against days.
};

/// "throughput".
std::string_view name(Objective objective);

/// The objective of this name. Errors: no such objective.
Result<Objective> parse_objective(const std::string& name);

/// "throughput,memory". Requires: a front.
std::string_view name(Front front);

/// The front of this name; "memory" is the first. Errors: no such front.
Result<Front> parse_front(const std::string& name);

/// The rows of a sweep that are reported, and their order.
struct SweepSelection {
  Objective objective = Objective::throughput;
  std::vector<Condition> where;  ///< Conditions; all must hold.
  Front front = Front::none;
  std::size_t top = 0;  ///< 0 = all.
};

/// The feasible rows that no other feasible row beats. A row beats another that is no better in
/// either number, and worse in one of them: less throughput, more peak memory; or more cost, more
/// days. Rows that are equal in both stay; rows that lack a number go. Requires: a front.
std::vector<SweepRow> pareto(std::vector<SweepRow> rows, Front front = Front::memory);

/// The reported rows: the feasible ones best first, then the others by their points. Rows that are
/// equal by the objective are ordered by memory, then throughput, then point.
std::vector<SweepRow> select(std::vector<SweepRow> rows, const SweepSelection& selection);

}  // namespace plumbline
