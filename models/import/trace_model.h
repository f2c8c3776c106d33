// The model of a trace: its layers and times, sizes from a table, several traces as one chain.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "models/import/csv_profile.h"
#include "models/profile/profile.h"

namespace plumbline {

/// The model of a trace, and sentences that its reader should know.
struct TraceModel {
  Model model;
  std::vector<std::string> notes;
};

/// Gives the layers of `trace` the kinds and sizes in a table's rows. The table's times are not
/// used. Notes name layers that the table leaves out. Errors: a row that names no layer of the
/// trace.
Diagnostics add_sizes(const std::vector<CsvLayer>& table, TraceModel& trace);

/// The layers of all traces one after another, as the ranks of a pipeline hold them. A layer that
/// stands for a whole stage (kWholeStage) becomes stage0, stage1, ... Each note says which of the
/// `files` it is about. Errors: two layers of one name. Requires: one file for each trace, at least
/// one.
Result<TraceModel> chain_traces(std::vector<TraceModel> traces,
                                const std::vector<std::string>& files);

}  // namespace plumbline
