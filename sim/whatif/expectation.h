// What a run is expected to give, for checks of scenarios and of orders that were handed in.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/prediction/outcome.h"
#include "sim/whatif/row_number.h"

namespace plumbline {

/// An expected number of a run.
struct Expectation {
  std::string name;  ///< As it was written: "makespan".
  RowNumber number;
  bool of_makespan = false;  ///< The number is the makespan, which no row has.
  std::string operation;     ///< One of < <= > >= == !=.
  std::string value;         ///< As it was written: "15 ms".
  double bound = 0;          ///< The same in the unit of the number.
};

/// Reads a condition such as "makespan=15ms" or "bubble_fraction < 0.3": the grammar of
/// parse_condition(), with `=` for `==`. A name may stand without its unit ("makespan",
/// "peak_memory"). Besides the numbers of a row there is makespan_s. Errors: no operation, an
/// unknown name, a value of another kind.
Result<Expectation> parse_expectation(const std::string& text);

/// Whether a run met it.
struct MetExpectation {
  bool met = false;
  std::string said;  ///< "makespan = 15 ms"; "makespan is 18 ms, expected 15 ms".
};

/// Compares. Numbers are equal within 1 ns, or within a share of 1e-9. A number that the run does
/// not have meets nothing.
MetExpectation meets(const Expectation& expectation, const Outcome& outcome);

}  // namespace plumbline
