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

/// Stages of a device; a pipeline of more stages than layers is refused anyway.
inline constexpr std::uint32_t kMaxChunks = 1000;

/// The rule of a schedule whose devices have several stages, or whose backwards have two parts.
struct ChunkRule {
  OpLists (*lists)(const ChunkShape& shape);
  StagePlacement placement = StagePlacement::loop;
  std::uint32_t min_chunks = 1;
  std::uint32_t max_chunks = 1;
  bool takes_group = false;      ///< Micro-batches go round in groups, of any size.
  bool even_devices = false;     ///< p is even.
  std::uint32_t min_rounds = 0;  ///< m is so many times p at least.
  bool has_own_pairs = false;    ///< That overlap: see dual_pairs().

  /// Two where there may be several.
  std::uint32_t usual_chunks() const { return std::min(2U, max_chunks); }
  /// What is wrong with the number of micro-batches (at `mark`) or of devices (at `name`); its help
  /// says what would do.
  std::optional<Diagnostic> refuse(const ChunkShape& shape, const Mark& mark,
                                   const Mark& name) const;
};

/// What a schedule is. A rule without chunks gives position s a window K_s (capped at the number of
/// micro-batches m): F0..F(K-1), then B(k), F(K+k) in turn, then the remaining B's in order.
struct ScheduleRule {
  std::string_view name;
  /// The window of a position with `depth` micro-batches between it and the end of the pipeline
  /// and back, of m in all: p-s for position s of p; with replica counts r_0, r_1, ... and their
  /// sum N, floor((N - 1 - sum of r_j before s) / r_s) + 1 (Narayanan et al. 2019, section 3.2).
  /// Null with chunks.
  std::uint32_t (*window)(std::uint32_t depth, std::uint32_t m) = nullptr;
  std::optional<ChunkRule> chunks{};  ///< Instead of a window.
  /// An update after every backward and no flush.
  bool asynchronous = false;
  /// One host thread loops over the whole model: the loop is the issue order.
  bool host_loop = false;
  bool takes_warm_up = false;
  bool takes_slices = false;  ///< Micro-batches may be cut along their sequence.
  bool whole_model = false;   ///< Every device runs one copy of a single stage.
  std::string_view summary;
  std::string_view order;
  // The closed forms for p positions, m micro-batches, equal stages of f and b, free links; with
  // chunks p devices of v stages, each of f and b = i + w.
  std::string_view bubble;
  std::string_view in_flight;  ///< The most micro-batches that position s holds.
  std::string_view makespan;
  std::string_view elsewhere = "";  ///< The makespan where links or stages differ; "" = none known.
  std::string_view source;
};

/// What a scenario with this schedule may not have, or must: replicas, copies, warm-ups, updates; a
/// sentence each.
std::vector<std::string> limits_of(const ScheduleRule& rule);

/// All rules, in the order in which they are listed.
const std::vector<ScheduleRule>& schedule_rules();

/// Their names.
std::vector<std::string> schedule_names();

/// What papers write in full and these names have in short.
const Abbreviations& schedule_abbreviations();

/// The rule of this name, in any case, with `_` for `-` or neither, or under another name that is
/// known: PyTorch's classes (`ScheduleGPipe`, `Interleaved1F1B`), `zb1p`. Else nullptr.
const ScheduleRule* find_schedule_rule(std::string_view name);

/// The window of each position, in micro-batches of one replica: by the rule (which has one), or
/// `warm_up` + 1 where that is given (one a position), never above the number that a replica has.
/// In slices where there are such, and the rule's then grows by all but one of a micro-batch, whose
/// backward begins with its last one (Sun et al. 2024, Seq1F1B).
std::vector<std::uint32_t> windows(const ScheduleRule& rule, const PipelineShape& shape,
                                   const std::optional<std::vector<std::uint32_t>>& warm_up);

/// The order of one replica of a position, which has every micro-batch m with m mod replicas =
/// replica: `window` forwards, then backward and forward in turn, then backwards; its forwards run
/// through its stages upwards, its backwards downwards. The backwards of a micro-batch's slices
/// come last slice first, as each adds to the gradients of the keys and values before it.
std::vector<Op> window_list(const Position& position, std::uint32_t window,
                            std::uint32_t micro_batches, std::uint32_t replica = 0,
                            std::uint32_t replicas = 1, std::uint32_t slices = 1);

/// The schedule of `rule` over `shape` with these windows (one a position).
/// Requires: a rule with a window; no slot in two positions.
/// Errors (at `mark`): a deadlock, which only a given warm-up can bring about.
Result<Schedule> generate(const ScheduleRule& rule, const PipelineShape& shape,
                          const std::vector<std::uint32_t>& windows, const Mark& mark);

}  // namespace plumbline
