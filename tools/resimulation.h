// Runs of a GPU that are stored, predicted once more: by this version, from the stored profiles.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "tools/result_file.h"

namespace plumbline {

/// The networks that ran on a GPU, in their order, each point with what this version predicts and
/// the error of that. Causes and verdicts are not known, as no trace is stored. Scenarios are those
/// that scripts/validate-gpu wrote: examples/gpt2-on-h100.yaml with another network and profile.
/// Requires: the repository's folder is the current one. Errors: a name that is no "NETWORK on
/// PARTS[, blocking|, hybrid]"; what its scenario or its profile says.
Result<std::vector<ResultFile>> resimulate(const std::vector<ResultFile>& results);

/// One line for each point. The same results give the same bytes.
std::string resimulation_json(const std::vector<ResultFile>& resimulated);

/// Reads what resimulation_json wrote. Errors: no such file; not of that form.
Result<std::vector<ResultFile>> read_resimulation(const std::string& path);

/// The errors of the runs as they were predicted then, and as they are now. Requires: each of
/// `resimulated` is one of `results`, by name.
std::string resimulation_table(const std::vector<const ResultFile*>& results,
                               const std::vector<ResultFile>& resimulated, const std::string& noun);

}  // namespace plumbline
