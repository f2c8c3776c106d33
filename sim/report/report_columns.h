// The spans of a run as columns of small numbers: what the HTML report carries, and its page reads.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/prediction/outcome.h"

namespace plumbline {

/// What a reader has to know to take the columns apart.
struct ColumnLayout {
  std::int64_t tick_ns = 1;                  ///< Times are whole multiples of this, rounded down.
  std::int64_t makespan = 0;                 ///< In ticks, as the others here.
  std::vector<std::uint32_t> slot_items;     ///< How many items hold each slot's stream.
  std::vector<std::int64_t> slot_busy;       ///< What they add up to, in ticks.
  std::vector<std::uint32_t> channel_items;  ///< How many hold each channel.
  std::uint32_t moment_items = 0;            ///< How many hold neither.
  std::vector<std::uint32_t> slot_gaps;      ///< Idle gaps of each slot.
  std::vector<std::uint32_t> memory_points;  ///< Of each slot.
  std::vector<bool> memory_sampled;          ///< Whether they are the largest of a slice of time.
};

/// The tick for a run of this length: 1 ns while a JavaScript number holds its nanoseconds exactly
/// (below 2^53, 104 days), else more.
std::int64_t tick_for(Duration makespan);

/// Appends the columns of `outcome` to `bytes`, each a sequence of LEB128 numbers (seven bits a
/// byte, the lowest first; `~` marks zigzag: 0, -1, 1, -2 are 0, 1, 2, 3), and returns their
/// layout. An item is an activity in a lane; lanes are the slots, then the channels, then all that
/// holds neither, each in its own order. A blocking transfer is an item of both its streams.
///
///   kind        as ActivityKind counts
///   stage       ~ less that of the item before it in the lane
///   micro-batch ~ less that of the last item of its kind in the lane
///   cost        ~ class of costs, less that of the item before it
///   gap         ~ begin, less the end of the item before it
///   length      ~ end - begin, less that of the last item of its kind
///   release     0 nobody, 1 the item before it in the lane, else 2 + ~ the item that let it start,
///               less the one told last for its kind in the lane (at first the item itself)
///
/// Then for each slot its idle gaps: begin less the end of the gap before it, length, cause as
/// IdleCause counts; each its own column. Then for each slot its memory: time less that of the
/// point before it, ~ bytes less those of the point before it.
ColumnLayout append_columns(const Outcome& outcome, std::int64_t tick_ns, std::string& bytes);

}  // namespace plumbline
