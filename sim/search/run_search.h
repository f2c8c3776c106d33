// A search as a whole: all of its layouts on several threads, kept as they come.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "sim/search/search.h"
#include "sim/search/search_file.h"
#include "sim/whatif/work.h"

namespace plumbline {

/// What became of a search.
struct SearchRun {
  /// Its families by their numbers, whatever the threads did; the layouts of each as they ascend.
  /// Which is best: see report() of sim/report/search_report.h.
  SearchPart part;
  std::uint64_t done = 0;    ///< Layouts, those counted that were passed over,
  std::uint64_t wanted = 0;  ///< of so many of the search, or of its shard.
  bool stopped = false;      ///< Some were left out, as `stop` was set.
  /// The file of WorkOptions, which has all whole families, too, as long as they are in no other
  /// one: whoever has written the result removes it.
  std::optional<PartialFile> partial;
};

/// Predicts the layouts of a search, or of its shard, family by family; of what the file of
/// `options` has kept none again. Progress counts layouts. What comes out does not depend on the
/// number of threads. Errors: those of PartialFile::open and of parse_partial; a family that cannot
/// be kept.
Result<SearchRun> run_search(const Search& search, const WorkOptions& options = {});

}  // namespace plumbline
