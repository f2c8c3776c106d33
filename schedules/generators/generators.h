// The registry of schedules and the one generator behind them: a window of micro-batches per
// position.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "schedules/generators/chunk_orders.h"
#include "schedules/order/schedule.h"

namespace plumbline {

/// The most stages of a device. A pipeline of more stages than layers is refused anyway.
inline constexpr std::uint32_t kMaxChunks = 1000;

/// The rule of a schedule with several stages per device, or with backwards in two parts.
struct ChunkRule {
  OpLists (*lists)(const ChunkShape& shape);  ///< Null: the order is found for the costs.
  StagePlacement placement = StagePlacement::loop;
  std::uint32_t min_chunks = 1;
  std::uint32_t max_chunks = 1;
  bool takes_group = false;      ///< Micro-batches go round in groups of any size.
  bool even_devices = false;     ///< p must be even.
  std::uint32_t min_rounds = 0;  ///< m is at least this many times p.
  bool has_own_pairs = false;    ///< It has its own overlapping pairs: see dual_pairs().
  /// The stages of a device hold no more micro-batches in flight with more than 4p of them, as long
  /// as p divides their number.
  bool settles = false;

  /// The default number of chunks: two if several are allowed.
  std::uint32_t usual_chunks() const { return std::min(2U, max_chunks); }
  /// The error in the number of micro-batches (at `mark`) or of devices (at `name`), if any. Its
  /// help names valid numbers.
  std::optional<Diagnostic> refuse(const ChunkShape& shape, const Mark& mark,
                                   const Mark& name) const;
};

/// The definition of a schedule. A rule without chunks gives position s a window K_s, capped at the
/// number of micro-batches m. The order is F0..F(K-1), then B(k), F(K+k) in turn, then the
/// remaining B's in order.
struct ScheduleRule {
  std::string_view name;
  /// The window of a position, for m micro-batches in all. `depth` is the number of micro-batches
  /// between the position and the end of the pipeline and back: p-s for position s of p. With
  /// replica counts r_0, r_1, ... and their sum N it is floor((N - 1 - sum of r_j before s) / r_s)
  /// + 1 (Narayanan et al. 2019, section 3.2). Null with chunks.
  std::uint32_t (*window)(std::uint32_t depth, std::uint32_t m) = nullptr;
  std::optional<ChunkRule> chunks{};  ///< Used instead of a window.
  /// There is an update after every backward, and no flush.
  bool asynchronous = false;
  /// One host thread loops over the whole model: the loop is the issue order.
  bool host_loop = false;
  bool takes_warm_up = false;
  bool takes_slices = false;  ///< Micro-batches may be cut along their sequence.
  bool whole_model = false;   ///< Every device runs one copy of a single stage.
  std::string_view summary;
  std::string_view order;
  // The closed forms for p positions, m micro-batches, equal stages of f and b, and free links.
  // With chunks, p devices of v stages, each of f and b = i + w.
  std::string_view bubble;
  std::string_view in_flight;  ///< The most micro-batches that position s holds.
  std::string_view makespan;
  std::string_view elsewhere = "";  ///< The makespan if links or stages differ; "" = unknown.
  std::string_view source;
};

/// The limits on scenarios with this schedule: replicas, copies, warm-ups and updates that are
/// required or not allowed. A sentence each.
std::vector<std::string> limits_of(const ScheduleRule& rule);

/// Where the stages of an order stand that is found for the costs (`schedule.name: auto`).
enum class OpenPlacement : std::uint8_t {
  straight,  ///< One stage on each device.
  looped,    ///< Stage s on device s mod p, two or more on each.
  vee,       ///< Stages d and 2p-1-d on device d.
};

/// "straight", "looped", "v".
std::string_view name(OpenPlacement placement);

/// The rule named `auto`: it has chunks, but no lists, as these are found for the costs
/// (schedules/search).
const ScheduleRule& open_rule(OpenPlacement placement);

/// All rules with an order of their own, in the order of listings: without `auto`.
const std::vector<ScheduleRule>& schedule_rules();

/// The names of all rules, and `auto`.
std::vector<std::string> schedule_names();

/// Words that papers write in full, with the short forms of these names.
const Abbreviations& schedule_abbreviations();

/// A number of micro-batches, `micro_batches` or fewer, with which every device of a straight
/// pipeline of `devices` holds as many in flight, at the start of any op, as it ever does with
/// `micro_batches`.
std::uint32_t settled_micro_batches(const ScheduleRule& rule, std::uint32_t devices,
                                    std::uint32_t micro_batches);

/// The rule of this name, in upper or lower case, with `-`, `_` or neither. Other known names work,
/// too: PyTorch's classes (`ScheduleGPipe`, `Interleaved1F1B`), `zb1p`. Otherwise nullptr.
const ScheduleRule* find_schedule_rule(std::string_view name);

/// The window of each position, in micro-batches of one replica. It comes from the rule, or is
/// `warm_up` + 1 if that is given (one per position). It is at most the number of a replica's
/// micro-batches. With slices it is counted in slices. The rule's window then grows by all slices
/// of a micro-batch but one, as the backward begins with the last slice (Sun et al. 2024, Seq1F1B).
/// Requires: a rule with a window.
std::vector<std::uint32_t> windows(const ScheduleRule& rule, const PipelineShape& shape,
                                   const std::optional<std::vector<std::uint32_t>>& warm_up);

/// The order of one replica of a position. The replica has every micro-batch m with m mod replicas
/// = replica. The order is `window` forwards, then backward and forward in turn, then backwards.
/// Forwards run through the stages upwards, backwards downwards. The backwards of a micro-batch's
/// slices begin with the last slice, as each adds to the gradients of the keys and values before
/// it.
std::vector<Op> window_list(const Position& position, std::uint32_t window,
                            std::uint32_t micro_batches, std::uint32_t replica = 0,
                            std::uint32_t replicas = 1, std::uint32_t slices = 1);

/// The schedule of `rule` over `shape` with these windows (one per position).
/// Requires: a rule with a window; no slot in two positions.
/// Errors (at `mark`): a deadlock, which only a given warm-up can cause.
Result<Schedule> generate(const ScheduleRule& rule, const PipelineShape& shape,
                          const std::vector<std::uint32_t>& windows, const Mark& mark);

}  // namespace plumbline
