// The times of all activities: the one type that both the simulator and a real run produce.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"

namespace plumbline {

/// The time of one activity, and the activity that released it.
struct Span {
  SimTime begin;
  SimTime end;  ///< For a transfer, the time at which its data has arrived.
  /// The activity whose end let this one start: the requirement that was met last. Among equals,
  /// the predecessor on its own resource. kNobody = it started with the run.
  std::uint32_t released_by = 0;

  friend bool operator==(const Span&, const Span&) = default;
};

inline constexpr std::uint32_t kNobody = ~std::uint32_t{0};

/// The spans of a run, parallel to the nodes of its OpGraph. A trace does not know the scenario.
struct Trace {
  std::vector<Span> spans;

  friend bool operator==(const Trace&, const Trace&) = default;
};

}  // namespace plumbline
