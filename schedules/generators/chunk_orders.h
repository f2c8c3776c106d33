// Orders for pipelines in which a device has several stages, or a backward has two parts, as they
// were published.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "schedules/order/schedule.h"

namespace plumbline {

/// A pipeline that visits each device `chunks` times: devices x chunks stages.
struct ChunkShape {
  std::uint32_t devices = 1;
  std::uint32_t chunks = 1;  ///< Stages of each device.
  std::uint32_t micro_batches = 1;
  std::uint32_t group = 0;  ///< Micro-batches that go round together; 0: usual_group().

  std::uint32_t stages() const { return devices * chunks; }
  /// The micro-batches that go round together, in all groups but perhaps the last.
  std::uint32_t group_size() const;
};

/// How many micro-batches go round together where nobody says it. PyTorch's rule where it holds:
/// rounds = max(1, m / p), and m / rounds in each, if that is whole; p where m is a multiple of p.
/// Else the least size from p on that Megatron-LM takes: p or more are left for the last group.
std::uint32_t usual_group(const ChunkShape& shape);

/// Where stages stand.
enum class StagePlacement : std::uint8_t {
  loop,  ///< Stage s on device s mod p: round after round.
  vee,   ///< Two on each device, s and 2p-1-s: down and back up.
  both,  ///< Each on two devices, s and p-1-s, one for the pipeline down and one for that up.
};

/// How many replicas each stage has.
constexpr std::uint32_t replicas_in(StagePlacement placement) {
  return placement == StagePlacement::both ? 2 : 1;
}

/// The devices of each stage, replica by replica.
std::vector<std::vector<std::uint32_t>> placed_stages(StagePlacement placement,
                                                      const ChunkShape& shape);

/// Interleaved 1F1B (Narayanan et al. 2021, Megatron-LM, section 2.2): forwards go round chunk by
/// chunk in groups of g micro-batches (shape.group; the last group may be smaller), backwards from
/// the last chunk; min(vm, (v-1)g + 2(p-1-r)) forwards on device r, then one forward, one backward.
/// Placed in a loop. It deadlocks where a group is much smaller than p beside others.
OpLists interleaved_1f1b(const ChunkShape& shape);

/// Looped breadth-first (Lamy-Poirier 2023): chunk by chunk all forwards, then from the last chunk
/// all backwards, newest micro-batch first. Placed in a loop.
OpLists looped_breadth_first(const ChunkShape& shape);

/// ZB-H1 (Qi et al. 2024) with one chunk: as 1F1B, but that the backward's weight part comes s
/// backwards later on device s: as many micro-batches are kept as 1F1B keeps on device 0. With more
/// chunks, placed in a loop, interleaved in the same way, as PyTorch's
/// ScheduleInterleavedZeroBubble: forwards and backwards go round as in interleaved 1F1B, after
/// min(vm, (v-1)g + p-1-s) forwards.
OpLists interleaved_zero_bubble(const ChunkShape& shape);

/// ZB-H2 (Qi et al. 2024): up to 2p-1 micro-batches are kept, so that devices work without a gap.
/// The order is that of steps of equal length in which a device takes its next I if it is there,
/// else its next F if it has room, else its oldest W. One chunk.
OpLists zero_bubble_h2(const ChunkShape& shape);

/// That rule, with room for `max` micro-batches between F and W on each device.
OpLists greedy_zero_bubble(const ChunkShape& shape, std::uint32_t max);

/// ZB-V (Qi et al. 2024), as PyTorch lays it out for F, I and W of equal length. Placed in a vee.
OpLists zero_bubble_v(const ChunkShape& shape);

/// DualPipeV (DeepSeek-AI 2024), its pairs of a forward and a backward one after the other. Placed
/// in a vee. Requires: m >= 2p.
OpLists dualpipe_v(const ChunkShape& shape);

/// DualPipe (DeepSeek-AI 2024): the same in both directions, even micro-batches down the devices
/// and odd ones up. One chunk. Placed both ways. Requires: p and m are even, m >= 2p.
OpLists dualpipe(const ChunkShape& shape);

/// Chimera (Li and Hoefler 2021): even micro-batches go down the devices and odd ones up, and what
/// one way leaves idle the other one takes. The order is that of steps of equal length in which a
/// device takes its oldest B that is there, else, with fewer than p in flight, the F that is
/// nearest to the end. One chunk. Placed both ways. Requires: p and m are even.
OpLists chimera(const ChunkShape& shape);

}  // namespace plumbline
