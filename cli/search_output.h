// The report on the results of a search: for `search`, and for `merge` of its parts.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "cli/sweep_options.h"
#include "sim/report/search_report.h"

namespace plumbline {

/// The output options for the layouts of a search.
struct SearchOptions : SweepOptions {
  std::string output;  ///< "" = stdout.
  PageArguments page;
  std::string command_line;  ///< For the page.
};

void add_distinct_option(CLI::App& command, bool& distinct);

/// Errors: an unknown objective, a wrong condition.
Result<SearchSelection> read_selection(const SearchOptions& options, const SearchFacts& facts);

/// Prints the best layouts, and the command that predicts the first. Unless the search was
/// `stopped`, it also prints which layout would be first with other efficiencies. `search` may be
/// null; it is asked more on `threads` (0 = one per core). Returns the exit code.
int tell_search(SearchPart part, SearchSelection selection, const Search* search, bool stopped,
                const SearchOptions& options, unsigned threads = 0);

}  // namespace plumbline
