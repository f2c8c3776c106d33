// Runs that can be compared, from scenarios with several values and from results in files.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "sim/whatif/compare.h"

namespace plumbline {

/// The origin of a run.
struct RunOrigin {
  std::string path;                    ///< A scenario, or a result (.json).
  std::vector<std::string> overrides;  ///< For a scenario only.
};

/// The runs that are compared, and those that are not, as they cannot run.
struct ComparedRuns {
  std::vector<ComparedRun> runs;
  std::vector<RunOrigin> origins;  ///< Parallel to `runs`.
  std::vector<RefusedRun> refused;
  Diagnostics why_refused;  ///< All problems of the refused runs.
};

/// Whether a path names a result, as `simulate --json` and `run --json` write them, and not a
/// scenario.
bool is_result(const std::string& path);

/// Predicts every scenario under every combination of overrides, and reads every result. A run is
/// named after its file, if there are several, and after the keys that vary. A run that is well
/// formed but cannot run is left out. Errors: problems of an input; fewer than two runs are left,
/// with the problems of those left out. Requires: two runs, and a combination, which may be empty.
Result<ComparedRuns> compared_runs(const std::vector<std::string>& paths,
                                   const std::vector<std::vector<std::string>>& combinations);

}  // namespace plumbline
