// Closed forms of the makespan and of both bubbles, each with the range in which it holds.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "schedules/generators/chunk_orders.h"

namespace plumbline {

/// One mini-batch of a synchronous pipeline as the closed forms see it: a forward and a backward
/// time for each position, and a latency for each boundary. Transfers take no bandwidth and hold no
/// stream.
struct PipelineTimes {
  std::vector<Duration> forward;
  std::vector<Duration> backward;
  std::vector<Duration> latency;    ///< One fewer than positions.
  std::uint32_t micro_batches = 1;  ///< Or slices; the times are then those of a slice.
  std::uint32_t slices = 1;         ///< Per micro-batch.
  /// The time of the forward again, which needs no gradient and is no part of `backward`; empty: it
  /// is a part, or there is none.
  std::vector<Duration> again{};
};

/// The result of a closed form.
struct ClosedForm {
  Duration makespan{};
  /// Idle time over devices x makespan, and idle time over busy time; 0 where nothing takes time.
  double bubble_fraction = 0;
  double bubble_overhead = 0;
  std::string text;  ///< "(p-1)/(m+p-1)", or a makespan where the bubble has no short form.
};

/// The closed form of `schedule` for these times, or nothing where none is known to hold. With p
/// positions, m micro-batches, equal times f and b and latency c:
///  - naive: m p (f+b) + 2 c m (p-1); any times.
///  - delayed-backward, c = 0: ((m-1) p + 1)(f+b) for m >= 2; equal positions.
///  - gpipe: (m+p-1)(f+b) + 2 c (p-1); with c = 0 any times: sum f + (m-1) max f + sum b + (m-1)
///  max b.
///  - 1f1b: (m+p-1)(f+b); with c > 0, p >= 2 and m a multiple of p: + 2 c ((p-1) m/p + p-2).
///  - eager-1f1b: (m+p-1)(f+b) + 2 c (p-1) while 2c <= f+b.
/// With k slices of times f and b per micro-batch, m is replaced by k m; 1f1b and eager-1f1b then
/// need c = 0. With forwards again of time r that need no gradient (`again`), equal positions and
/// c = 0: naive m (p (f+b) + r); gpipe, 1f1b and eager-1f1b (m+p-1)(f+b) + m r. The equal, free
/// case is from Huang et al. 2019 and Narayanan et al. 2021. The other forms were found and checked
/// by exhaustive simulation.
std::optional<ClosedForm> closed_form(std::string_view schedule, const PipelineTimes& times);

/// The closed form for micro-batches of unlike length, or nothing where none is known to hold. Each
/// entry has the times of one micro-batch. With alike positions and free links, where micro-batch i
/// takes f_i and b_i on each position:
///  - naive: p (sum f + sum b).
///  - gpipe: sum f + sum b + (p-1)(max f + max b). Each phase is a flow shop with alike machines.
/// Checked by simulation. Requires: at least one micro-batch; as many positions for all.
std::optional<ClosedForm> closed_form_of_lengths(std::string_view schedule,
                                                 const std::vector<PipelineTimes>& micro_batches);

/// One mini-batch of a schedule with chunks. All stages are alike, and links are free.
struct ChunkTimes {
  ChunkShape shape;
  Duration forward{};         ///< One stage, like the next two.
  Duration backward_input{};  ///< The whole backward where it is not split.
  Duration backward_weight{};
};

/// The closed form of a schedule with chunks, or nothing where none is known to hold. With p
/// devices of v stages, m micro-batches, times f and b = i + w per stage. "Whole groups" = the
/// group size is at least p, and the last group is full or has at least p micro-batches.
///  - interleaved-1f1b, whole groups: (v m + p - 1)(f+b); one group of m < p: (m + v p - 1)(f+b).
///  - looped-bfs, m >= p: (v m + p - 1)(f+b).
///  - zb-h1, f >= w, i >= w and m >= p: m (f+b) + (p-1)(f + i - w).
///  - zb-h2, f = i = w and m >= 2p-1: m (f+b) + (p-1) f; zb-v, likewise: 2 m (f+b) + (p-1) f.
///  - v-half, f = i = w and m >= p >= 3: 2 m (f+b) + (3p-7) f for even p, 2 m (f+b) + (3p-4) f for
///    odd p.
///  - v-min, f = i = w and m >= p >= 2: 2 m (f+b) + (4p-7) f, or + (4p-5) f where p mod 3 = 1.
///  - interleaved-zb, f >= w, i >= w and whole groups: v m (f+b) + (p-1)(f + i - w).
///  - chimera, m = p: m (f+b) + (p-2) max(f, b); f = b, m a multiple of p: m (f+b) + (p-2) f.
///  - dualpipev, b >= f >= i >= w, its pairs one after the other: 2 m (f+b) + (p-1)(f + i - w).
///  - dualpipe, likewise: m (f+b) + (p/2-1)(f + i - w).
/// Sources: Narayanan et al. 2021, Lamy-Poirier 2023 and Qi et al. 2024. The forms of v-half,
/// v-min, interleaved-zb, chimera, dualpipev and dualpipe were found by simulation; all forms are
/// checked by it.
std::optional<ClosedForm> chunk_closed_form(std::string_view schedule, const ChunkTimes& times);

}  // namespace plumbline
