// The named ranges of a PyTorch profiler trace, read without keeping the rest.
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

/// One range of a layer. Times are in microseconds, as in the trace.
struct TraceRange {
  std::uint32_t layer = 0;  ///< Index in TraceEvents::layers.
  RangePass pass{};
  bool on_gpu = false;
  double start = 0;
  double length = 0;
  std::int64_t thread = 0;                  ///< On a GPU: the stream.
  std::optional<std::int64_t> external_id;  ///< Equal for the CPU range and its GPU ranges.

  double end() const { return start + length; }
  double middle() const { return start + length / 2; }
};

/// One training step: a range named `ProfilerStep#N` on the CPU.
struct TraceStep {
  double start = 0;
  double end = 0;
};

/// A call on the CPU that may have started work on a GPU.
struct TraceLaunch {
  double at = 0;
  std::int64_t thread = 0;
  std::int64_t correlation = 0;
};

/// The communication of a kernel, which may wait for other devices.
enum class PeerWork : std::uint8_t {
  none,             ///< None: it computes or copies.
  collective,       ///< An NCCL collective of a group: a layer's own, or a reduction of gradients.
  send_or_receive,  ///< An NCCL transfer between stages: it computes nothing.
  unknown,          ///< An NCCL kernel for a send, a receive or an all-to-all.
};

/// Work of a GPU: a kernel, copy or fill. One launch may start several (a CUDA graph).
struct TraceKernel {
  std::int64_t correlation = 0;
  double start = 0;
  double length = 0;
  PeerWork peer = PeerWork::none;
};

/// A name, and how often it occurs.
using NameCount = std::pair<std::string, std::size_t>;

/// The ranges of layers, the steps, and counts of other events for messages.
struct TraceEvents {
  std::vector<std::string> layers;  ///< Names, in the order in which they first occur.
  std::vector<TraceRange> ranges;
  std::vector<TraceStep> steps;
  std::vector<TraceLaunch> launches;        ///< Launches with a correlation id.
  std::vector<TraceKernel> kernels;         ///< Kernels with a correlation id.
  std::set<std::int64_t> autograd_threads;  ///< Threads on which autograd evaluated functions.
  std::size_t events = 0;
  std::size_t gpu_work = 0;            ///< Kernels, copies and fills.
  std::vector<NameCount> annotations;  ///< Named ranges of no layer, most frequent first.
  std::vector<NameCount> others;       ///< All other events with a duration, most frequent first.
};

/// Reads the JSON of a Chrome trace to its end. Memory grows with the ranges of layers, launches
/// and kernels (24 to 32 bytes each) and with the different names, not with the other events.
/// `source` names the file in messages. Errors: an empty text; no JSON or not all of it (with the
/// byte); no traceEvents; a range of a layer without a length; a name that is too long; more than
/// kMaxLayers layers.
Result<TraceEvents> read_trace_events(std::istream& text,
                                      const std::shared_ptr<const Source>& source,
                                      const RangeNames& names);

}  // namespace plumbline
