// What a PyTorch profiler trace holds of named ranges, read without keeping the rest.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/diagnostic.h"
#include "models/range_names.h"

namespace plumbline {

/// One range of a layer. Times in microseconds, as the trace gives them.
struct TraceRange {
  std::uint32_t layer = 0;  ///< In TraceEvents::layers.
  RangePass pass{};
  bool on_gpu = false;
  double start = 0;
  double length = 0;
  std::int64_t thread = 0;                  ///< Or the stream, on a GPU.
  std::optional<std::int64_t> external_id;  ///< Equal for the CPU and GPU ranges of one range.
};

/// One training step: a range named `ProfilerStep#N` on the CPU.
struct TraceStep {
  double start = 0;
  double end = 0;
};

/// How often a name occurs.
using NameCount = std::pair<std::string, std::size_t>;

/// The ranges of layers, the steps, and what else there was, for messages.
struct TraceEvents {
  std::vector<std::string> layers;  ///< Names, in the order in which they first occur.
  std::vector<TraceRange> ranges;
  std::vector<TraceStep> steps;
  std::size_t events = 0;
  std::size_t gpu_work = 0;            ///< Kernels, copies and fills.
  std::vector<NameCount> annotations;  ///< Named ranges that are of no layer, most frequent first.
  std::vector<NameCount> others;       ///< All other events with a duration, the same way.
};

/// Reads the JSON of a Chrome trace to its end. Memory grows with the ranges of layers and the
/// different names, not with the events. `source` names the file in messages.
/// Errors: an empty text, no JSON or not all of it (with the byte), no traceEvents, a range of a
/// layer without a length, a name that is too long, more than kMostLayers layers.
Result<TraceEvents> read_trace_events(std::istream& text,
                                      const std::shared_ptr<const Source>& source,
                                      const RangeNames& names);

}  // namespace plumbline
