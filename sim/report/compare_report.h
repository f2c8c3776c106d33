// A comparison as text: its table and its JSON.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "base/document.h"
#include "sim/whatif/compare.h"

namespace plumbline {

/// The table of `compare`: one column per run with differences from the first one; the keys in
/// which the runs differ; their notes; the verdict.
Document to_table(const std::vector<ComparedRun>& runs,
                  const std::vector<RefusedRun>& refused = {});

/// The JSON of `compare --json`. Ends in a newline.
std::string to_json(const std::vector<ComparedRun>& runs, const std::string& version,
                    const std::vector<RefusedRun>& refused = {});

}  // namespace plumbline
