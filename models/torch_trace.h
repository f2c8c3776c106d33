// A model from a PyTorch profiler trace: layer times from its named ranges.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <string>
#include <vector>

#include "models/csv_profile.h"
#include "models/diagnostic.h"
#include "models/profile.h"
#include "models/range_names.h"

namespace plumbline {

/// How a trace is read.
struct TraceOptions {
  RangeNames names;
  std::int64_t skip = 1;  ///< Steps that are left out at the beginning.
};

/// The model of a trace, and what its reader ought to know about it: sentences.
struct TraceModel {
  Model model;
  std::vector<std::string> notes;
};

/// Each range is one run of a layer's pass; a layer's times are statistics over its runs in the
/// steps that are not skipped. Ranges on a GPU count, where a pass of a layer has them, else those
/// on the CPU. The layers form a chain in the order of their first forwards. A forward that runs
/// within a backward (activations computed again) is part of that backward. Sizes are 0 and the
/// batch is unknown: they are not in a trace.
/// Errors: of read_trace_events; no range of a layer; a layer without forward or without backward;
/// fewer steps than are skipped, or no run of a pass beyond them; ranges of layers within each
/// other.
Result<TraceModel> parse_torch_trace(std::istream& text,
                                     const std::shared_ptr<const Source>& source,
                                     const TraceOptions& options);

/// The same from a file, plain or compressed with gzip. Errors: also of GzipFile.
Result<TraceModel> read_torch_trace(const std::string& path, const TraceOptions& options);

/// Gives the layers of `trace` the kinds and sizes of a table's rows; its times are not used. Notes
/// layers that the table leaves out. Errors: a row of no layer.
Diagnostics add_sizes(const std::vector<CsvLayer>& table, TraceModel& trace);

}  // namespace plumbline
