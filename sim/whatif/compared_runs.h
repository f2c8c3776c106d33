// Scenarios with several values, and results in files, as runs that can be compared.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "sim/whatif/compare.h"

namespace plumbline {

/// Where a run comes from.
struct RunOrigin {
  std::string path;                    ///< A scenario, or a result (.json).
  std::vector<std::string> overrides;  ///< Of a scenario.
};

/// What is compared, and what is not, as it cannot run.
struct ComparedRuns {
  std::vector<ComparedRun> runs;
  std::vector<RunOrigin> origins;  ///< Parallel to `runs`.
  std::vector<RefusedRun> refused;
  Diagnostics why_refused;  ///< All that is wrong with those.
};

/// Whether a path names a result, as `simulate --json` and `run --json` write them, and no
/// scenario.
bool is_result(const std::string& path);

/// Predicts every scenario under every combination of overrides, and reads every result. A run is
/// named after its file, where there are several, and the keys that vary. Errors: what is wrong
/// with an input; what is well formed, but cannot run, is left out, and an error where fewer than
/// two are left. Requires: two runs, and a combination, which may be empty.
Result<ComparedRuns> compared_runs(const std::vector<std::string>& paths,
                                   const std::vector<std::vector<std::string>>& combinations);

}  // namespace plumbline
