// A whole sweep: all of its points on several threads, kept as they come, returned in their order.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "sim/whatif/sweep.h"
#include "sim/whatif/work.h"

namespace plumbline {

/// The result of running a sweep.
struct SweepRun {
  SweepResult result;    ///< Its rows are in the order of points, whatever the threads did.
  bool stopped = false;  ///< Points were left out, as `stop` was set.
  /// The file of WorkOptions. It holds the rows, too, until another file has them: the caller
  /// removes it after writing the result.
  std::optional<PartialFile> partial;
};

/// Evaluates the points of a sweep, or of its shard. Skips the points that the file of `options`
/// has. The rows do not depend on the number of threads. Errors: those of PartialFile::open and of
/// parse_partial; a row that cannot be kept.
Result<SweepRun> run_sweep(const Sweep& sweep, const WorkOptions& options = {});

}  // namespace plumbline
