// The results of a search as a table for people, as CSV and JSON.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/document.h"
#include "sim/search/search_choices.h"
#include "sim/search/search_file.h"
#include "sim/search/search_selection.h"

namespace plumbline {

class Search;

/// The best layout on devices that are faster or slower than assumed.
struct OtherDevice {
  std::string part;       ///< The slower part: "products", "links"; "" = all, by a roofline.
  double share = 0;       ///< Of that part's speed; of the peaks, by a roofline.
  std::size_t first = 0;  ///< Index into SearchReport::best.
  double gain = 0;        ///< Its gain in speed over the first row, as a share.
};

/// The number of best rows that are predicted for other devices.
inline constexpr std::size_t kBestLayouts = 10;

/// The reported layouts, and the numbers of the others.
struct SearchReport {
  SearchFacts facts;
  std::vector<SearchRow> rows;        ///< The reported rows, best first.
  std::vector<SearchRow> best;        ///< The best kBestLayouts rows, reported or not.
  std::vector<SearchChoice> choices;  ///< Among all rows that meet the conditions, reported or not.
  std::vector<SearchRow> front;       ///< Those of them that no other beats.
  SearchSelection selection;
  std::int64_t mini_batch = 0;  ///< In samples; 0 if the rows differ in it.
  std::uint64_t layouts = 0;
  std::uint64_t done = 0;  ///< Evaluated layouts; fewer than all if the search was interrupted.
  std::uint64_t feasible = 0;
  std::uint64_t misfits =
      0;  ///< Layouts that do not fit, including those with larger micro-batches.
  std::uint64_t cannot_run = 0;
  /// Layouts that were not predicted, as they are slower than the best ones by their bounds. Some
  /// of them may not fit.
  std::uint64_t slower = 0;
  std::optional<SearchRow> nearest;  ///< The misfit that lacks the least memory.
  std::string why_not;    ///< The reason of the first layout that cannot run; "" = all can run.
  double efficiency = 0;  ///< The roofline's share of the peaks; 0 = no roofline gave the times.
  /// The number of `best` that are too close to the first to be told from it; nothing unless
  /// published runs say how sure the order of all `best` is.
  std::optional<std::size_t> too_close{};
  std::vector<OtherDevice> others;
  /// Other devices were not tried, since the scenario is not available.
  bool others_untried = false;
  std::string command;  ///< The command that predicts the first row alone; "" = no row is reported.
};

/// Collects families in any order, and reports the rows in their own order.
class SearchTally {
 public:
  explicit SearchTally(SearchFacts facts) : facts_(std::move(facts)) {}

  void add(FamilyResult result);
  std::uint64_t done() const { return done_; }

  /// Reports the rows that meet the conditions. If layouts are equal and differ only in their
  /// overrides, only the best is reported. For example, without any recomputation the stages may
  /// still be cut as if there were some.
  SearchReport report(SearchSelection selection) &&;

 private:
  SearchFacts facts_;
  std::uint64_t done_ = 0;
  std::uint64_t misfits_ = 0;
  std::uint64_t cannot_run_ = 0;
  std::uint64_t slower_ = 0;
  std::vector<SearchRow> feasible_;
  std::optional<SearchRow> nearest_;
  std::optional<SearchRow> refused_;  ///< The first one by number that cannot run.
};

/// The report of all families of a search at once.
SearchReport report(SearchPart part, SearchSelection selection);

/// Predicts the best rows for other devices: by a roofline, those that reach 0.8 and 1.2 times the
/// assumed share of their peaks; by kernels, those whose products, or links and network cards,
/// reach 0.8 times their speed, products only of a preset. Counts the rows that are too close to
/// the first, if all best rows have expected_errors and are of one model. Does nothing if times are
/// not estimated or are those of measured kernels, if the search varies the device, or if its
/// objective is no speed. `threads`: 0 = one per core.
void try_other_devices(const Search& search, SearchReport& report, unsigned threads = 0);

/// Sentences on how sure the order of the layouts is.
std::vector<std::string> doubts(const SearchReport& report);

/// The question in a line: the number of layouts, the mini-batch, the objective.
std::string question(const SearchReport& report);

/// Remarks on the search as a whole, a sentence each.
std::vector<std::string> remarks(const SearchReport& report);

/// One row per layout, then the remarks, and the first layout as a command.
Document to_table(const SearchReport& report);
/// The same as Markdown.
std::string to_markdown(const SearchReport& report);
/// RFC 4180, with a header; numbers are not rounded.
std::string to_csv(const SearchReport& report);
/// JSON of schema version 1; one row per line.
std::string to_json(const SearchReport& report, const std::string& version);
/// One HTML file that needs no network: charts over the columns in which the layouts differ, and
/// the rows. The same input gives the same bytes. `command`, typed in a shell, writes the file
/// again.
std::string html_report(const SearchReport& report, const std::string& command,
                        const std::string& version);

}  // namespace plumbline
