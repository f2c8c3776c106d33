// What a search found, as a table for people, CSV and JSON.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/search/search_file.h"
#include "sim/whatif/sweep_order.h"

namespace plumbline {

class Search;

/// Who would be first if the devices reached another share of their peaks.
struct OtherEfficiency {
  double efficiency = 0;
  std::size_t first = 0;  ///< Of SearchReport::best.
  double gain = 0;        ///< How much faster it is then than the first row, as a share.
};

/// What of a search is told, in which order.
struct SearchSelection {
  SweepSelection rows;                ///< By their numbers.
  std::vector<ConditionText> layout;  ///< And by what the layouts are: all of them.
  bool distinct = false;  ///< Only the best of each tensor, context, expert and pipeline size.
};

/// Conditions are those of parse_condition, or on a column of a layout by its name in tables or
/// JSON, or its key, or on a key that the search varies: "pipeline <= 4", "schedule.name == 1f1b".
/// Errors: as there.
Result<SearchSelection> select_layouts(SweepSelection rows, const std::vector<std::string>& where,
                                       const std::vector<std::string>& varied_keys);

/// The layouts that are told, and what became of the others.
struct SearchReport {
  SearchFacts facts;
  std::vector<SearchRow> rows;  ///< Those that are told, best first.
  std::vector<SearchRow> best;  ///< The best ten, told or not.
  SearchSelection selection;
  std::int64_t mini_batch = 0;  ///< In samples; 0 where the rows have different ones.
  std::uint64_t layouts = 0;
  std::uint64_t done = 0;  ///< Fewer than all in an interrupted search.
  std::uint64_t feasible = 0;
  std::uint64_t misfits = 0;  ///< Do not fit, larger micro-batches of such ones counted.
  std::uint64_t cannot_run = 0;
  std::optional<SearchRow> nearest;  ///< Of the misfits, the one that lacks least.
  std::string why_not;               ///< Why the first that cannot run does not; "" = all can.
  double efficiency = 0;             ///< That was counted on; 0 = times were not estimated.
  std::vector<OtherEfficiency> others;
  /// Who would be first with other efficiencies was not tried, as the scenario is not at hand.
  bool others_untried = false;
  std::string command;  ///< What predicts the first row alone; "" = none is told.
};

/// Takes in families, in any order, and tells rows in theirs.
class SearchTally {
 public:
  explicit SearchTally(SearchFacts facts) : facts_(std::move(facts)) {}

  void add(FamilyResult result);
  std::uint64_t done() const { return done_; }

  /// Of rows that are alike but for how they were asked for, and meet the conditions, the best
  /// stands there alone: with nothing made again, stages may have been cut as if something were.
  SearchReport report(SearchSelection selection) &&;

 private:
  SearchFacts facts_;
  std::uint64_t done_ = 0;
  std::uint64_t misfits_ = 0;
  std::uint64_t cannot_run_ = 0;
  std::vector<SearchRow> feasible_;
  std::optional<SearchRow> nearest_;
  std::optional<SearchRow> refused_;  ///< The first by its number.
};

/// The same of all families of a search at once.
SearchReport report(SearchPart part, SearchSelection selection);

/// Predicts the best rows for devices that reach 0.8 and 1.2 times the share of their peaks that
/// was counted on. Nothing changes where times are not estimated, or the search varies that share.
void try_other_efficiencies(const Search& search, SearchReport& report);

/// What was asked, in a line: how many layouts of which mini-batch, best by what.
std::string question(const SearchReport& report);

/// What is to be said of the search as a whole, a sentence each.
std::vector<std::string> remarks(const SearchReport& report);

/// A row a layout, then what is to be said of all, and the first as a command.
std::string to_table(const SearchReport& report);
/// The same as Markdown.
std::string to_markdown(const SearchReport& report);
/// RFC 4180, with a header; numbers are not rounded.
std::string to_csv(const SearchReport& report);
/// JSON of schema version 1; a row a line.
std::string to_json(const SearchReport& report, const std::string& version);
/// One HTML file that needs no network: charts over what the layouts differ in, and the rows. The
/// same input gives the same bytes. `command` typed in a shell writes the file again.
std::string html_report(const SearchReport& report, const std::string& command,
                        const std::string& version);

}  // namespace plumbline
