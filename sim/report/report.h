// A prediction as a table for people and as JSON for programs.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/document.h"
#include "sim/planning/planning.h"
#include "sim/prediction/outcome.h"
#include "sim/report/timeline.h"

namespace plumbline {

/// The tables that `simulate` prints, with the timeline between them where a style is given.
Document to_table(const Outcome& outcome, const std::optional<TimelineStyle>& style);

/// "1.86 s to 2.37 s": with as many digits as such a range deserves.
std::string range_text(const TimeRange& range);

/// One line with the scenario, its schedule, stages, devices and micro-batches.
std::string headline(const Outcome& outcome);

/// The estimates of several rows as one line, "estimated: ...": of each kind (the words before the
/// first colon) the first, and that other rows have others. "" = none.
std::string estimated_line(const std::vector<std::string>& estimates);

/// The remark beside Outcome::flops_per_s_per_device(). Requires: it has a value.
std::string arithmetic_remark(const Outcome& outcome);

/// Remarks on the numbers, one per line, after a blank line: a lack of memory, estimates, notes. ""
/// = none.
std::string remarks(const Outcome& outcome);

/// The tables that `plan` prints.
Document to_table(const Scenario& scenario, const Planning& planning);

/// The JSON of `plan --json`, in the order of the contract. Ends in a newline.
std::string to_json(const Scenario& scenario, const Planning& planning, double planning_time_s);

/// The JSON of `simulate --json`, one line per top-level key, in the order of the contract. Ends in
/// a newline.
std::string to_json(const Outcome& outcome, const std::string& version);

}  // namespace plumbline
