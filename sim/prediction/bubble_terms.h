// What the bubble of a run is made of: that of equal stages on free links, and what each
// difference from these adds.
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

/// Why a bubble is not that of equal stages on free links, in the order in which the differences
/// are taken away.
enum class BubbleCause : std::uint8_t {
  measured,        ///< What a measured run has beside the simulation of the same costs.
  changing_rates,  ///< Network cards that transfers share; neighbours that slow each other.
  uneven_stages,   ///< Stages, or devices, that take more than others.
  uneven_passes,   ///< Stages whose forward is another share of their time than that of others.
  uneven_slices,   ///< Slices of a micro-batch that take more than others.
  pairs,           ///< A forward and a backward at the same time.
  transfers,       ///< Latency and bandwidth of what goes from stage to stage.
  collectives,     ///< All-reduces, or their halves, and the launches of the buckets.
  updates,         ///< Of a synchronous run; of an asynchronous one they are a part of the stages.
  overhead,        ///< Time per iteration.
};

inline constexpr std::size_t kBubbleCauses = static_cast<std::size_t>(BubbleCause::overhead) + 1;

/// The cause as JSON writes it: "uneven_stages".
std::string_view name(BubbleCause cause);

/// What one difference adds: so much less is left where it is taken away, after those before it.
/// Below 0 where it takes off.
struct BubbleTerm {
  BubbleCause cause = BubbleCause::uneven_stages;
  double fraction = 0;  ///< Of the bubble fraction.
  Duration time{};      ///< Of the makespan, or of the steady state of an asynchronous run.
};

/// The stage that takes most, or the device, where devices have several.
struct SlowestStage {
  bool is_device = false;
  std::uint32_t stage = 0;            ///< With `is_device` that of its stages which takes most.
  std::uint32_t device = 0;           ///< Its first one, in the cluster.
  std::vector<std::uint32_t> stages;  ///< Of that device.
  double work_s = 0;                  ///< What a micro-batch takes of it, on average.
  double above_mean = 0;              ///< By this share of the mean of all devices' work.
  std::string why;                    ///< "head", "more layers", "recomputation"; "" = not known.
};

/// A bubble fraction term by term. The differences are taken away one at a time, each time in a
/// simulation, so that base and terms add up to the run: times to the nanosecond.
struct BubbleTerms {
  bool steady = false;  ///< Of the steady state of an asynchronous run.
  double base = 0;      ///< The bubble fraction of equal stages on free links, in this order.
  Duration base_time{};
  std::optional<ClosedForm> formula;    ///< That gives the base; nothing where it is simulated.
  std::vector<BubbleTerm> terms;        ///< Those that change anything.
  double whole = 0;                     ///< The run's.
  std::optional<SlowestStage> slowest;  ///< Where stages are uneven.
};

/// The terms of a run. Equal stages have each the mean of all for each kind of op (where stages
/// have replicas, or devices several stages, so much that all devices do the same). First all
/// stages take as much as the mean, each with its own ratio of forward to backward; then they have
/// the same ratio, and so on, until nothing but equal stages takes time. Costs a longest path a
/// term, none where all stages are alike and nothing else takes time. `measured` = the trace is
/// that of a real run.
BubbleTerms bubble_terms(const Outcome& outcome, bool measured = false);

/// The stage, or the device, that takes most; nothing where all take the same. The work of updates
/// counts in an asynchronous run.
std::optional<SlowestStage> slowest_stage(const Outcome& outcome);

/// What an op of a stage takes, by its kind: F, B, I, W, U; launches and recomputation included.
Duration op_time(const Outcome& outcome, std::uint32_t stage, std::size_t kind);

/// Which of the five kinds a stage runs for each micro-batch.
std::vector<std::size_t> kinds_of_work(const Outcome& outcome);

}  // namespace plumbline
