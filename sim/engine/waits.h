// Why a device was idle: what it waited for, who was to blame, over which link.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/engine/idle.h"

namespace plumbline {

/// A time in which a device did nothing, up to its next activity or to the end of a mini-batch.
struct Wait {
  std::uint32_t slot = 0;
  SimTime begin;
  SimTime end;
  std::vector<IdleGap> parts;    ///< By cause, in the order of time; they cover it.
  std::uint32_t next = kNobody;  ///< What began at its end; kNobody = nothing did.
  /// Who was last to let `next` begin: the op that made its input, the last of an all-reduce's
  /// members, the other end of a blocking transfer. Where nothing began: who ended the mini-batch.
  /// kNobody = `next` waited for weights that are gathered.
  std::uint32_t culprit = kNobody;
  std::uint32_t transfer = kNobody;  ///< What brought the input, where something did.

  Duration length() const { return end - begin; }
};

/// All waits of all devices, by slot, then time.
std::vector<Wait> waits(const OpGraph& graph, const Trace& trace);

}  // namespace plumbline
