// The period of a run without a flush: how soon after one mini-batch the next one can begin.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/trace.h"
#include "sim/graph/op_graph.h"

namespace plumbline {

/// A device's part of a mini-batch: from the begin of its first activity to the end of its last
/// one. The last one is its update, or a gather of the weights that the update made.
struct DeviceSpan {
  std::uint32_t first = 0;  ///< The nodes that begin and end it.
  std::uint32_t last = 0;
  SimTime begin;
  SimTime end;

  Duration length() const { return end - begin; }
};

/// The spans of a run without a flush, one per slot. Requires: !graph.flushes, one mini-batch.
std::vector<DeviceSpan> device_spans(const OpGraph& graph, const Trace& trace);

/// The span that is longest; the first among equals.
const DeviceSpan& longest(const std::vector<DeviceSpan>& spans);

/// The shortest period of a run without a flush. In the steady state every activity of the next
/// mini-batch is that of this one, a period later. Dependencies lie within a mini-batch. So a
/// period is possible if no device begins the next mini-batch before it has ended this one (and the
/// overhead of an iteration has passed), and no link and no network card has to do with transfers
/// of two mini-batches at the same time. Requires: as device_spans.
Duration shortest_period(const OpGraph& graph, const Trace& trace);

}  // namespace plumbline
