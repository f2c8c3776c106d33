// Predictions compared with runs that were recorded elsewhere.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "calibrate/diagnosis/recorded_run.h"
#include "calibrate/validate/validate_runs.h"

namespace plumbline {

/// The traces of one recorded run.
using TraceFiles = std::vector<std::string>;

/// The traces of each run that words name: a folder is a run of its own, whose traces are its files
/// that end in .json or .json.gz (those with "rank" in their names, where there are any); all other
/// words are traces of one more run. Errors: a folder without such files; one that cannot be read.
Result<std::vector<TraceFiles>> runs_of(const std::vector<std::string>& words);

/// Compares each prediction with the recorded run of the same place. Errors: those of
/// measured_run(), at the schedule of the scenario. Requires: as many of both.
Result<std::vector<ValidationPoint>> validate_against(std::vector<PlannedRun> planned,
                                                      const std::vector<RecordedRun>& runs,
                                                      double tolerance);

}  // namespace plumbline
