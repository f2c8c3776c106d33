// A sweep as a table for people, as Markdown, CSV and JSON.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/document.h"
#include "sim/whatif/sweep_order.h"

namespace plumbline {

/// The reported rows of a sweep, and the numbers of the others.
struct SweepReport {
  SweepResult result;  ///< Its rows are the reported ones, in their order.
  SweepSelection selection;
  std::uint64_t done = 0;        ///< Evaluated points; fewer than all if the sweep was interrupted.
  std::uint64_t misfits = 0;     ///< Evaluated points that do not fit the memory.
  std::uint64_t cannot_run = 0;  ///< Evaluated points without numbers.

  /// Whether any reported row is feasible.
  bool any_feasible() const;
};

/// The reason why no reported row is feasible, in a sentence. Requires: not any_feasible().
std::string infeasibility(const SweepReport& report);

SweepReport report(SweepResult result, SweepSelection selection);

/// The question in a line: the number of points, the keys, the objective.
std::string question(const SweepReport& report);

/// Remarks on the rows as a whole, a sentence each: the reasons why rows are not reported, and the
/// way numbers were estimated.
std::vector<std::string> remarks(const SweepReport& report);

/// One row per point, with the columns of the varied keys first; then the remarks.
Document to_table(const SweepReport& report);

/// The same rows as a table of GitHub's Markdown.
std::string to_markdown(const SweepReport& report);

/// RFC 4180, with a header; numbers are not rounded, and their units stand in the header.
std::string to_csv(const SweepReport& report);

/// JSON of schema version 1; one row per line. A shard of a sweep can be read back, and so can a
/// whole sweep whose selection leaves nothing out: see sweep_file.h.
std::string to_json(const SweepReport& report, const std::string& version);

}  // namespace plumbline
