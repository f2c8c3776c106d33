// The waits of a device: their causes, the activities to blame, and the links.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/engine/idle.h"

namespace plumbline {

/// A time in which a device did nothing, up to its next activity or the end of a mini-batch.
struct Wait {
  std::uint32_t slot = 0;
  SimTime begin;
  SimTime end;
  std::vector<IdleGap> parts;    ///< The parts by cause, in the order of time; they cover the wait.
  std::uint32_t next = kNobody;  ///< The activity that began at its end; kNobody = none.
  /// The last activity that `next` waited for: the op that made its input, the last of an
  /// all-reduce's members, or the other end of a blocking transfer. If nothing began, the activity
  /// that ended the mini-batch. kNobody = `next` waited for weights that are gathered.
  std::uint32_t culprit = kNobody;
  std::uint32_t transfer = kNobody;  ///< The transfer that brought the input, if any.

  Duration length() const { return end - begin; }
};

/// All waits of all devices, by slot, then time.
std::vector<Wait> waits(const OpGraph& graph, const Trace& trace);

}  // namespace plumbline
