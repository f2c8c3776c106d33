// The order of `schedule.name: auto`: asked, searched, simulated.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedules/search/order_bound.h"
#include "sim/prediction/outcome.h"

namespace plumbline {

/// The most F, B, I and W of an order that is searched for.
inline constexpr std::size_t kMaxOpsToOrder = 3'000'000;

/// A published schedule with the same costs, placement and memory.
struct NamedOrder {
  std::string name;
  double time_s = 0;  ///< See order_time_s().
  bool fits = true;
};

/// The time that this share of the runs with noise do not exceed decides which order is the best.
inline constexpr double kNoisyShare = 0.95;
/// The most runs that are sampled of each order, to choose one.
inline constexpr std::uint32_t kOrderSamples = 200;

/// The iteration time that kNoisyShare of the runs do not exceed.
struct NoisyOrder {
  double time_s = 0;       ///< Of the order that was chosen.
  double calm_time_s = 0;  ///< Of the order that is the fastest without noise.
};

/// A partition that was chosen together with the order.
struct ChosenPartition {
  std::vector<std::int64_t> layers;  ///< Of each stage.
  /// The time of the best order for the balanced partition; nothing: it has too little memory.
  std::optional<double> balanced_s;
};

/// A placement that was tried, with the best order found for it.
struct TriedPlacement {
  std::string name;
  /// See order_time_s(); with noise the iteration time that kNoisyShare of the runs do
  /// not exceed. Nothing: it cannot run.
  std::optional<double> time_s;
  std::string why_not;
};

/// The answer, before it is part of the scenario.
struct OrderAnswer {
  Scenario scenario;     ///< With the order found.
  OrderProblem problem;  ///< The question.
  /// Of any order of that question; with several placements, of the one whose bound is the least.
  OrderBound bound;
  double time_s = 0;              ///< Of the order found: see order_time_s().
  Bytes peak_memory;              ///< Of its fullest device.
  bool fits = true;               ///< Within the memory of every device, when simulated.
  std::vector<NamedOrder> named;  ///< The fastest first.
  /// With schedule.placement: auto, all that the scenario can have, the chosen one first.
  std::vector<TriedPlacement> placements = {};
  std::optional<ChosenPartition> partition = {};  ///< With plan.partition: auto.
  std::optional<NoisyOrder> noisy = {};           ///< With noise.
  std::string devices = {};                       ///< What plan.devices: auto chose; "" = nothing.

  /// What decides between two answers: with noise the time of their slow runs.
  double decisive_time_s() const { return noisy ? noisy->time_s : time_s; }
  /// How much the order is above the bound at most, as a share.
  double gap() const {
    return bound.time > 0 ? time_s * 1e9 / static_cast<double>(bound.time) - 1 : 0;
  }
};

/// The overrides for an order that is searched: a wish for it, such as schedule.placement, leaves
/// the order open, too.
std::vector<std::string> for_open_order(std::vector<std::string> overrides);

/// The scenario with its order left open, on the devices of its own schedule; one that leaves it
/// open stays as it is. `overrides` are those with which it was read. Errors: schedule.file gives
/// the order; those of parse_scenario().
Result<Scenario> with_open_order(Scenario scenario, std::vector<std::string> overrides);

/// Finds the order of a scenario that leaves it open. With
/// schedule.placement: auto it finds one for each placement, and takes the fastest. With
/// plan.partition: auto it moves layers between neighbouring stages while that makes the best order
/// faster. Errors: a partition that is to be planned; a device that has no room for one micro-batch
/// (infeasible); more than kMaxOpsToOrder ops; recomputation that is to be fitted, pairs that
/// overlap; those of predict_resolved(). Once `stop` is set, the best order so far is the answer;
/// null = never.
Result<OrderAnswer> answer_order(Scenario scenario, const std::atomic<bool>* stop = nullptr);

/// From the begin of the first op to the end of the last of the first mini-batch, in seconds.
/// Without a flush: the period, from one mini-batch to the next.
double order_time_s(const Outcome& outcome);

/// The scenario of answer_order(), with a note of the bound.
Result<Scenario> find_order(Scenario scenario);

/// The same in words: "at most 1.8 % above any order within this memory".
std::string gap_text(const OrderAnswer& answer);

/// "82.6 ms".
std::string time_in_words(double time_s);

/// "3.2 % longer", "0.041 % shorter" or "the same".
std::string longer_text(double time_s, double than_s);

/// A line for each thing that was chosen with the order: the placement, the partition, what noise
/// makes of it.
std::vector<std::string> choice_lines(const OrderAnswer& answer);

}  // namespace plumbline
