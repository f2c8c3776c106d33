// The best layouts of a search alone: bounds tell which of the others need no simulation.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "sim/search/run_search.h"
#include "sim/search/search_selection.h"

namespace plumbline {

/// Whether bounds can show that a layout is not among the rows of a selection: it asks for the best
/// few by throughput, on all devices or on each.
bool takes_bounds(const SearchSelection& selection);

/// The same best rows as run_search() and rank() give, in less time. First come the bounds of all
/// layouts (run_bounds). Families are passed over from the first layout on that cannot fit. The
/// layouts that are left are predicted family by family, those with the best bounds first. It ends
/// when no bound is as good as the last of the `least` best rows, or of as many as the selection
/// asks for. The result counts the rest as slower. It does not depend on the number of threads.
/// Progress counts layouts that may fit by their bounds, and are decided. Requires: a selection
/// that takes bounds; options without a shard or a file.
SearchRun search_best(const Search& search, const SearchSelection& selection, std::size_t least,
                      const WorkOptions& options = {});

}  // namespace plumbline
