// The spans of a run as columns of small numbers, which the HTML report contains and its page
// reads.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/prediction/outcome.h"

namespace plumbline {

/// The data that a reader needs to separate the columns.
struct ColumnLayout {
  std::int64_t tick_ns = 1;                  ///< Times are multiples of this, rounded down.
  std::int64_t makespan = 0;                 ///< In ticks, as the other times here.
  std::vector<std::uint32_t> slot_items;     ///< Number of items on each slot's stream.
  std::vector<std::int64_t> slot_busy;       ///< The sum of their times, in ticks.
  std::vector<std::uint32_t> channel_items;  ///< Number of items on each channel.
  std::uint32_t moment_items = 0;            ///< Number of items on neither.
  std::vector<std::uint32_t> slot_gaps;      ///< Number of idle gaps of each slot.
  std::vector<std::uint32_t> memory_points;  ///< Number of memory points of each slot.
  std::vector<bool> memory_sampled;  ///< Whether each point is the largest one of a slice of time.
};

/// The tick for a run of this length. It is 1 ns if a JavaScript number holds the nanoseconds
/// exactly (below 2^53, 104 days), else longer.
std::int64_t tick_for(Duration makespan);

/// Appends the columns of `outcome` to `bytes` and returns their layout. A column is a sequence of
/// LEB128 numbers (seven bits per byte, the lowest first). `~` marks zigzag: 0, -1, 1, -2 are 0, 1,
/// 2, 3. An item is an activity in a lane. Lanes are the slots, then the channels, then all
/// activities on neither, each in its own order. A blocking transfer is an item of both its
/// streams.
///
///   kind        as ActivityKind counts
///   stage       ~ less that of the item before it in the lane
///   micro-batch ~ less that of the last item of its kind in the lane
///   cost        ~ class of costs, less that of the item before it
///   gap         ~ begin, less the end of the item before it
///   length      ~ end - begin, less that of the last item of its kind
///   release     0 nobody, 1 the item before it in the lane, else 2 + ~ the item that let it start,
///               less the one written last for its kind in the lane (at first the item itself)
///
/// Then the idle gaps of each slot, one column each: begin less the end of the gap before; length;
/// cause, as IdleCause counts. Then the memory of each slot: time less that of the point before, ~
/// bytes less those of the point before, ~ activations among them less those of the point before.
ColumnLayout append_columns(const Outcome& outcome, std::int64_t tick_ns, std::string& bytes);

}  // namespace plumbline
