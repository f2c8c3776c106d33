// Published orders for pipelines in which a device has several stages, or a backward has two parts.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "schedules/order/schedule.h"

namespace plumbline {

/// A pipeline that passes each device `chunks` times: devices x chunks stages.
struct ChunkShape {
  std::uint32_t devices = 1;
  std::uint32_t chunks = 1;  ///< Stages per device.
  std::uint32_t micro_batches = 1;
  std::uint32_t group = 0;  ///< Micro-batches that go round together; 0 = usual_group().

  std::uint32_t stages() const { return devices * chunks; }
  /// The number of micro-batches that go round together, in all groups except perhaps the last.
  std::uint32_t group_size() const;
};

/// The default number of micro-batches that go round together. PyTorch's rule where it holds:
/// rounds = max(1, m / p), and m / rounds in each, if that is whole; so p where m is a multiple of
/// p. Else the least size >= p that Megatron-LM accepts: the last group is full or has at least p.
std::uint32_t usual_group(const ChunkShape& shape);

/// The placement of stages on devices.
enum class StagePlacement : std::uint8_t {
  loop,  ///< Stage s on device s mod p: round after round.
  vee,   ///< Two stages on each device, s and 2p-1-s: down and back up.
  both,  ///< Each stage on two devices, s for the pipeline down and p-1-s for the one up.
};

/// The number of replicas of each stage.
constexpr std::uint32_t replicas_in(StagePlacement placement) {
  return placement == StagePlacement::both ? 2 : 1;
}

/// The devices of each stage, replica by replica.
std::vector<std::vector<std::uint32_t>> placed_stages(StagePlacement placement,
                                                      const ChunkShape& shape);

/// Interleaved 1F1B (Narayanan et al. 2021, Megatron-LM, section 2.2). Forwards go round chunk by
/// chunk in groups of g micro-batches (shape.group; the last group may be smaller). Backwards do
/// the same from the last chunk. Device r first runs min(vm, (v-1)g + 2(p-1-r)) forwards, then one
/// forward and one backward in turn. Placed in a loop. It deadlocks where one group is much smaller
/// than p and there are other groups.
OpLists interleaved_1f1b(const ChunkShape& shape);

/// Looped breadth-first (Lamy-Poirier 2023): all forwards chunk by chunk, then all backwards from
/// the last chunk, newest micro-batch first. Placed in a loop.
OpLists looped_breadth_first(const ChunkShape& shape);

/// ZB-H1 (Qi et al. 2024) with one chunk: like 1F1B, but W comes s backwards later on device s.
/// Every device keeps as many micro-batches as 1F1B keeps on device 0. With more chunks it is
/// interleaved, like PyTorch's ScheduleInterleavedZeroBubble: forwards and backwards go round as in
/// interleaved 1F1B, after min(vm, (v-1)g + p-1-s) forwards. Placed in a loop.
OpLists interleaved_zero_bubble(const ChunkShape& shape);

/// ZB-H2 (Qi et al. 2024): up to 2p-1 micro-batches are kept, so that devices work without a gap.
/// The order comes from steps of equal length. In a step a device takes its next I if it is ready,
/// else its next F if it has room, else its oldest W. One chunk.
OpLists zero_bubble_h2(const ChunkShape& shape);

/// The rule of ZB-H2, with room for `max` micro-batches between F and W on each device.
OpLists greedy_zero_bubble(const ChunkShape& shape, std::uint32_t max);

/// ZB-V (Qi et al. 2024), as PyTorch plans it for F, I and W of equal length. Placed in a vee.
OpLists zero_bubble_v(const ChunkShape& shape);

/// DualPipeV (DeepSeek-AI 2024); the forward and backward of a pair run one after the other. Placed
/// in a vee. Requires: m >= 2p.
OpLists dualpipe_v(const ChunkShape& shape);

/// DualPipe (DeepSeek-AI 2024): like DualPipeV, in both directions. Even micro-batches go down the
/// devices, odd ones up. One chunk. Placed both ways. Requires: p and m are even, m >= 2p.
OpLists dualpipe(const ChunkShape& shape);

/// Chimera (Li and Hoefler 2021): even micro-batches go down the devices and odd ones up; each
/// direction uses the idle time of the other. The order comes from steps of equal length. In a step
/// a device takes its oldest B that is ready. Else, with fewer than p in flight, it takes the F of
/// the oldest pair of micro-batches that is ready; of two in one pair, the one nearer to the end.
/// One chunk. Placed both ways. Requires: p and m are even.
OpLists chimera(const ChunkShape& shape);

}  // namespace plumbline
