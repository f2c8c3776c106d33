// A model from a PyTorch profiler trace: layer times from its named ranges.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <string>

#include "base/diagnostic.h"
#include "models/import/range_names.h"
#include "models/import/trace_model.h"

namespace plumbline {

/// The options of reading a trace.
struct TraceOptions {
  RangeNames names;
  std::int64_t skip = 1;  ///< The number of first steps to leave out.
};

/// Each range is one run of a layer's pass. A layer's times are statistics over its runs in the
/// steps that are not skipped. A run lasts from the start of the first kernel launched within its
/// range, on any thread (join_kernels), to the end of the last one. Ranges on a GPU count instead
/// where they agree with that within 1 %, or where no kernel can be joined to a launch. Where there
/// are neither, ranges on the CPU count. The layers form a chain in the order of their first
/// forwards. A forward within a backward (recomputation) is part of that backward. A trace has no
/// sizes and no batch: sizes are 0 and the batch is unknown. Errors: those of read_trace_events; no
/// range of a layer; a layer without forward, or without backward and both of its parts; fewer
/// steps than are skipped, or no run of a pass beyond them; ranges of layers within each other; a
/// run longer than kLargestQuantity.
Result<TraceModel> parse_torch_trace(std::istream& text,
                                     const std::shared_ptr<const Source>& source,
                                     const TraceOptions& options);

/// The same from a file, plain or compressed with gzip. Errors: also those of GzipFile.
Result<TraceModel> read_torch_trace(const std::string& path, const TraceOptions& options);

}  // namespace plumbline
