// A sweep as a table for people, as Markdown, CSV and JSON.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/whatif/sweep_order.h"

namespace plumbline {

/// The rows of a sweep that are told, with what became of the others.
struct SweepReport {
  SweepResult result;  ///< Its rows are those that are told, in that order.
  SweepSelection selection;
  std::uint64_t done = 0;  ///< Points that were evaluated; fewer than all in an interrupted sweep.
  std::uint64_t misfits = 0;     ///< Of those: do not fit the memory.
  std::uint64_t cannot_run = 0;  ///< Of those: have no numbers.

  /// Whether any row that is told is feasible.
  bool any_feasible() const;
};

/// Why no row that is told is feasible, in a sentence. Requires: not any_feasible().
std::string infeasibility(const SweepReport& report);

SweepReport report(SweepResult result, SweepSelection selection);

/// What was asked, in a line: how many points over which keys, best by what.
std::string question(const SweepReport& report);

/// What is to be said of the rows as a whole, a sentence each: what became of those that are not
/// told, and how numbers were estimated.
std::vector<std::string> remarks(const SweepReport& report);

/// A row a point, the columns of the keys that vary first; then what is to be said of all.
std::string to_table(const SweepReport& report);

/// The same rows as a table of GitHub's Markdown.
std::string to_markdown(const SweepReport& report);

/// RFC 4180, with a header; numbers are not rounded, and their units stand in the header.
std::string to_csv(const SweepReport& report);

/// JSON of schema version 1; a row a line. A sweep's shard, and a whole one whose selection leaves
/// nothing out, can be read back: see sweep_file.h.
std::string to_json(const SweepReport& report, const std::string& version);

}  // namespace plumbline
