// The terms of a run's bubble: the bubble of equal stages on free links, and the addition by each
// difference from these.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "schedules/generators/bubble_formulas.h"

namespace plumbline {

struct Outcome;

/// The reasons why a bubble differs from the bubble of equal stages on free links. They stand in
/// the order in which the differences are taken away.
enum class BubbleCause : std::uint8_t {
  measured,        ///< The difference of a measured run from the simulation of the same costs.
  changing_rates,  ///< Transfers that share network cards; neighbours that slow each other down.
  uneven_stages,   ///< Stages, or devices, that take longer than others.
  uneven_passes,   ///< Stages with different ratios of forward to backward.
  uneven_slices,   ///< Slices of a micro-batch that take longer than others.
  pairs,           ///< A forward and a backward at the same time.
  transfers,       ///< Latency and bandwidth of the transfers between stages.
  collectives,     ///< All-reduces or their halves, and the launches of buckets.
  updates,         ///< For synchronous runs; in asynchronous runs updates belong to the stages.
  overhead,        ///< Time per iteration.
};

inline constexpr std::size_t kBubbleCauses = static_cast<std::size_t>(BubbleCause::overhead) + 1;

/// The cause as JSON writes it: "uneven_stages".
std::string_view name(BubbleCause cause);

/// The amount that one difference adds: the bubble shrinks by it when the difference is taken away,
/// after those before it. Below 0 if the difference makes the bubble smaller.
struct BubbleTerm {
  BubbleCause cause = BubbleCause::uneven_stages;
  double fraction = 0;  ///< Its part of the bubble fraction.
  /// Its part of the makespan, of the period without a flush, or of an asynchronous run's steady
  /// state.
  Duration time{};
};

/// The stage that takes longest, or the device, if devices have several stages.
struct SlowestStage {
  bool is_device = false;
  std::uint32_t stage = 0;   ///< With `is_device`, the slowest of the device's stages.
  std::uint32_t device = 0;  ///< The first device of the stage, as the cluster numbers them.
  std::vector<std::uint32_t> stages;  ///< The stages of that device.
  double work_s = 0;                  ///< Time of a micro-batch on it, on average.
  double above_mean = 0;  ///< Its work above the mean of all devices, as a share of that mean.
  std::string why;        ///< "head", "more layers", "recomputation"; "" = not known.
};

/// A bubble fraction term by term. The differences are taken away one at a time, each time in a
/// simulation, so that base and terms add up to the run: times to the nanosecond.
struct BubbleTerms {
  bool steady = false;  ///< True: the bubble of an asynchronous run's steady state.
  double base = 0;      ///< The bubble fraction of equal stages on free links, in this order.
  Duration base_time{};
  std::optional<ClosedForm> formula;    ///< The formula of the base; nothing if it is simulated.
  std::vector<BubbleTerm> terms;        ///< The terms that change anything.
  double whole = 0;                     ///< The bubble fraction of the run.
  std::optional<SlowestStage> slowest;  ///< Set if stages are uneven.
};

/// The terms of a run. Equal stages take, for each kind of op, the mean of all stages. If stages
/// have replicas, or devices several stages, the times make all devices work equally long. First
/// all stages take the mean time, each with its own ratio of forward to backward. Then all have the
/// same ratio, and so on, until only equal stages take time. Each term costs one longest path; none
/// is needed if all stages are alike and nothing else takes time. `measured`: the trace is that of
/// a real run.
BubbleTerms bubble_terms(const Outcome& outcome, bool measured = false);

/// The stage, or the device, that takes longest; nothing if all take the same time. In an
/// asynchronous run the work of updates counts.
std::optional<SlowestStage> slowest_stage(const Outcome& outcome);

/// The time of an op of a stage by its kind (F, B, I, W, U), with launches and recomputation.
Duration op_time(const Outcome& outcome, std::uint32_t stage, std::size_t kind);

/// The kinds, of the five, that a stage runs for each micro-batch.
std::vector<std::size_t> kinds_of_work(const Outcome& outcome);

}  // namespace plumbline
