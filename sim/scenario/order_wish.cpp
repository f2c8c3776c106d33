// Reads the keys of an order that is to be found.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/order_wish.h"

#include <fmt/format.h>

#include "base/section_reader.h"

namespace plumbline {

std::optional<OrderWish> read_order_wish(SectionReader& schedule, const ScheduleRule*& rule) {
  const auto placement = schedule.choice("placement", "placement");
  const auto in_flight = schedule.real("in_flight");
  const auto effort = schedule.real("effort");
  const bool is_open = rule != nullptr && rule->chunks && rule->chunks->lists == nullptr;
  if (!is_open) {
    const auto refuse = [&](const char* key, const Mark& mark) {
      schedule.error(mark,
                     fmt::format("schedule.{} does not apply to {}", key,
                                 rule != nullptr ? fmt::format("the schedule '{}'", rule->name)
                                                 : "an order from schedule.file"),
                     "it is for schedule.name: auto, whose order is found for the costs");
    };
    const bool known = rule != nullptr || schedule.has("file");
    if (placement && known) refuse("placement", placement->mark);
    if (in_flight && known) refuse("in_flight", in_flight->mark);
    if (effort && known) refuse("effort", effort->mark);
    return std::nullopt;
  }
  OrderWish wish;
  if (placement && placement->value == "looped") wish.placement = OpenPlacement::looped;
  if (placement && placement->value == "v") wish.placement = OpenPlacement::vee;
  rule = &open_rule(wish.placement);
  if (in_flight && in_flight->value < 1) {
    schedule.error(
        in_flight->mark,
        fmt::format("schedule.in_flight is {:g}, less than one activation", in_flight->value));
  }
  wish.in_flight = in_flight;
  if (effort) wish.effort = effort->value;
  return wish;
}

}  // namespace plumbline
