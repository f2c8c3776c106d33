// How what a search found is told: by `search`, and by `merge` of its parts.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "cli/sweep_options.h"
#include "sim/report/search_report.h"

namespace plumbline {

/// How the layouts of a search are told.
struct SearchOptions : SweepOptions {
  std::string output;        ///< "" = stdout.
  std::string command_line;  ///< For the page.
};

void add_distinct_option(CLI::App& command, bool& distinct);

/// Errors: an unknown objective, a wrong condition.
Result<SearchSelection> read_selection(const SearchOptions& options, const SearchFacts& facts);

/// Tells the best of what was found, with the command that predicts the first, and with who would
/// be first with other efficiencies, unless it was `stopped`; `search` may be null. Returns the
/// exit code.
int tell_search(SearchPart part, SearchSelection selection, const Search* search, bool stopped,
                const SearchOptions& options);

}  // namespace plumbline
