// The run as a picture in text: one row per device, one column per slice of time.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/prediction/outcome.h"

namespace plumbline {

/// The kind of activity that one column of a device shows.
enum class Shown : std::uint8_t {
  forward,
  backward,         ///< B, or I if the backward is split.
  backward_weight,  ///< W.
  recompute,        ///< A forward again, before its B has its gradient.
  update,
  transfer,  ///< A blocking transfer, which holds the device.
  waiting,   ///< Idle for a transfer, for the other end of a transfer, or for an all-reduce.
  idle,
};

/// One column.
struct TimelineCell {
  Shown kind = Shown::idle;
  std::uint32_t node = kNobody;  ///< Index of the shown span of the trace, if there is one.
  /// Set if an op is narrower than a column: the share of the column's time in which the device is
  /// busy. Kind and node then have no meaning.
  std::optional<double> busy;
};

/// The columns of every device, by slot. An op is shown from the column nearest to its begin to the
/// column nearest to its end, so that each edge is at most half a column off. A column that
/// contains an F, B, I or W narrower than a column shows a busy share instead.
using TimelineCells = std::vector<std::vector<TimelineCell>>;

/// Requires: columns >= 1, a run that takes time.
TimelineCells timeline_cells(const Outcome& outcome, std::size_t columns);

/// The style of the picture.
struct TimelineStyle {
  std::size_t width = 80;  ///< Width of the whole picture, in characters; at least 20.
  bool unicode = true;     ///< Else ASCII.
  bool color = false;      ///< ANSI colours besides the characters.
};

/// The picture with its axis and legend, at most 64 devices; "" for a run that takes no time.
std::string timeline(const Outcome& outcome, const TimelineStyle& style);

}  // namespace plumbline
