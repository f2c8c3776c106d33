// The model of a trace: its layers and times, sizes from a table, and several traces as one chain.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "models/import/csv_profile.h"
#include "models/profile/profile.h"

namespace plumbline {

/// The model of a trace, and what its reader ought to know about it: sentences.
struct TraceModel {
  Model model;
  std::vector<std::string> notes;
};

/// Gives the layers of `trace` the kinds and sizes of a table's rows; its times are not used. Notes
/// layers that the table leaves out. Errors: a row of no layer.
Diagnostics add_sizes(const std::vector<CsvLayer>& table, TraceModel& trace);

/// The layers of all traces one after another, as ranks of a pipeline hold them. A layer that
/// stands for a whole stage (kWholeStage) becomes stage0, stage1, ... A note says of which of the
/// `files` it is. Errors: two layers of one name. Requires: a file for each trace, at least one.
Result<TraceModel> chain_traces(std::vector<TraceModel> traces,
                                const std::vector<std::string>& files);

}  // namespace plumbline
