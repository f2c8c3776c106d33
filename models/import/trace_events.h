// What a PyTorch profiler trace holds of named ranges, read without keeping the rest.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "models/import/range_names.h"

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

  double end() const { return start + length; }
  double middle() const { return start + length / 2; }
};

/// One training step: a range named `ProfilerStep#N` on the CPU.
struct TraceStep {
  double start = 0;
  double end = 0;
};

/// A call on the CPU that may have started work of a GPU.
struct TraceLaunch {
  double at = 0;
  std::int64_t thread = 0;
  std::int64_t correlation = 0;
};

/// Whether a kernel waits for one other device.
enum class PeerWork : std::uint8_t {
  none,             ///< It computes or copies.
  collective,       ///< NCCL's, of a group: a layer's own, or the reduction of gradients.
  send_or_receive,  ///< NCCL's, between stages: it computes nothing.
  unknown,          ///< NCCL's, for a send, a receive or an all-to-all.
};

/// Work of a GPU: a kernel, copy or fill. One launch may have started several (a CUDA graph).
struct TraceKernel {
  std::int64_t correlation = 0;
  double start = 0;
  double length = 0;
  PeerWork peer = PeerWork::none;
};

/// How often a name occurs.
using NameCount = std::pair<std::string, std::size_t>;

/// The ranges of layers, the steps, and what else there was, for messages.
struct TraceEvents {
  std::vector<std::string> layers;  ///< Names, in the order in which they first occur.
  std::vector<TraceRange> ranges;
  std::vector<TraceStep> steps;
  std::vector<TraceLaunch> launches;        ///< Those with a correlation id.
  std::vector<TraceKernel> kernels;         ///< The same.
  std::set<std::int64_t> autograd_threads;  ///< On which autograd evaluated functions.
  std::size_t events = 0;
  std::size_t gpu_work = 0;            ///< Kernels, copies and fills.
  std::vector<NameCount> annotations;  ///< Named ranges that are of no layer, most frequent first.
  std::vector<NameCount> others;       ///< All other events with a duration, the same way.
};

/// Reads the JSON of a Chrome trace to its end. Memory grows with the ranges of layers, launches
/// and kernels (24 to 32 bytes each) and the different names, not with the other events. `source`
/// names the file in messages. Errors: an empty text, no JSON or not all of it (with the byte), no
/// traceEvents, a range of a layer without a length, a name that is too long, more than kMaxLayers
/// layers.
Result<TraceEvents> read_trace_events(std::istream& text,
                                      const std::shared_ptr<const Source>& source,
                                      const RangeNames& names);

}  // namespace plumbline
