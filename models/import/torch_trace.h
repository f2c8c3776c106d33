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

/// How a trace is read.
struct TraceOptions {
  RangeNames names;
  std::int64_t skip = 1;  ///< Steps that are left out at the beginning.
};

/// Each range is one run of a layer's pass; a layer's times are statistics over its runs in the
/// steps that are not skipped. A run takes from the start of the first kernel that was launched
/// within its range, on whatever thread (join_kernels), to the end of the last. Ranges on a GPU
/// count instead where they agree with that within 1 %, or where no kernel can be joined to a
/// launch; where there are neither, those on the CPU. The layers form a chain in the order of their
/// first forwards. A forward that runs within a backward (recomputation) is part of that backward.
/// Sizes are 0 and the batch is unknown: they are not in a trace.
/// Errors: of read_trace_events; no range of a layer; a layer without forward, or without backward
/// and both of its parts; fewer steps than are skipped, or no run of a pass beyond them; ranges of
/// layers within each other; a run longer than kLargestQuantity.
Result<TraceModel> parse_torch_trace(std::istream& text,
                                     const std::shared_ptr<const Source>& source,
                                     const TraceOptions& options);

/// The same from a file, plain or compressed with gzip. Errors: also of GzipFile.
Result<TraceModel> read_torch_trace(const std::string& path, const TraceOptions& options);

}  // namespace plumbline
