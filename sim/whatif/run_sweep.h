// A sweep as a whole: all of its points on several threads, kept as they come, in their order.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "sim/whatif/sweep.h"
#include "sim/whatif/work.h"

namespace plumbline {

/// What became of a sweep.
struct SweepRun {
  SweepResult result;    ///< Its rows by their points, whatever the threads did.
  bool stopped = false;  ///< Points were left out, as `stop` was set.
  /// The file of WorkOptions, which has the rows, too, as long as they are in no other one: whoever
  /// has written the result removes it.
  std::optional<PartialFile> partial;
};

/// Evaluates the points of a sweep, or of its shard; of what the file of `options` has kept no
/// point again. The rows do not depend on the number of threads. Errors: those of PartialFile::open
/// and of parse_partial; a row that cannot be kept.
Result<SweepRun> run_sweep(const Sweep& sweep, const WorkOptions& options = {});

}  // namespace plumbline
