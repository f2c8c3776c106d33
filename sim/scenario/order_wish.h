// What the order that `schedule.name: auto` asks for must keep to.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "schedules/generators/generators.h"

namespace plumbline {

class SectionReader;
struct Scenario;

/// The wishes for an order that is found for the costs, and the order once it has been found.
struct OrderWish {
  OpenPlacement placement = OpenPlacement::straight;
  /// The most activations that a device may hold, in those of one stage. An F adds 1, its W (or B
  /// where it is not split) takes it away. Nothing: what the memory holds.
  std::optional<Marked<double>> in_flight;
  double effort = 1;                     ///< In times of the usual effort.
  std::shared_ptr<const OpLists> found;  ///< By slot; null: it has not been searched yet.
  /// The same scenario with the other placements that it can have; null: the placement is given.
  std::shared_ptr<const std::vector<Scenario>> others;
  /// The placements that it cannot have, each with the reason.
  std::vector<std::pair<OpenPlacement, std::string>> impossible;
};

/// Reads placement, in_flight and effort. Sets `rule` to that of the placement. Nothing unless
/// `rule` leaves the order open. Errors: these keys with another rule; values out of range.
std::optional<OrderWish> read_order_wish(SectionReader& schedule, const ScheduleRule*& rule);

}  // namespace plumbline
