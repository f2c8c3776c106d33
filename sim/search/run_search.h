// A whole search: all of its layouts on several threads, kept as they come.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "sim/search/search.h"
#include "sim/search/search_file.h"
#include "sim/whatif/work.h"

namespace plumbline {

/// The result of running a search.
struct SearchRun {
  /// The families in the order of their numbers, each with its layouts in ascending order, whatever
  /// the threads did. report() of sim/report/search_report.h finds the best.
  SearchPart part;
  std::uint64_t done = 0;    ///< The number of layouts done, those passed over included.
  std::uint64_t wanted = 0;  ///< The number of layouts in the search, or in its shard.
  bool stopped = false;      ///< Some layouts were left out, as `stop` was set.
  /// The file of WorkOptions. It holds all complete families, too, until another file has them: the
  /// caller removes it after writing the result.
  std::optional<PartialFile> partial;
};

/// Predicts the layouts of a search, or of its shard, family by family. Skips the families that the
/// file of `options` has. Progress counts layouts. The result does not depend on the number of
/// threads. Errors: those of PartialFile::open and of parse_partial; a family that cannot be kept.
Result<SearchRun> run_search(const Search& search, const WorkOptions& options = {});

}  // namespace plumbline
