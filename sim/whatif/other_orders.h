// The times of the same stages and costs in the orders of other schedules.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/prediction/outcome.h"

namespace plumbline {

/// A run under another schedule.
struct OtherOrder {
  std::string schedule;
  std::optional<double> iteration_time_s;  ///< Nothing if it cannot run; see why_not.
  Bytes peak_memory{};                     ///< Peak of the device that needs most.
  std::optional<bool> fits;                ///< Nothing without a memory size.
  std::uint32_t stages = 0;
  bool assumes_split = false;  ///< It splits backwards, but some layer gives no split.
  std::string why_not;         ///< "it uses other devices"; "" = it ran.

  /// Whether it is known not to fit the memory.
  bool is_too_large() const { return fits == false; }
};

/// The run of `outcome` under each of the other named schedules, on its devices and with as many
/// micro-batches. If the schedule places stages in the same way, the run keeps its stages and its
/// recomputed layers. Otherwise it has the stages that the scenario has under that name. Best
/// first; then the schedules that cannot run, in the order of the list of schedules. Asynchronous
/// schedules are compared only with asynchronous ones, since they train another model. `overrides`
/// are those with which `scenario` was read: it is read again with the name of each schedule. Costs
/// one longest path per schedule. Empty for the schedule 'data-parallel', which has no pipeline.
std::vector<OtherOrder> other_orders(const Scenario& scenario,
                                     const std::vector<std::string>& overrides,
                                     const Outcome& outcome);

/// A text on the orders that beat the run, their gain and their needs; or that none does. "" if
/// none can run, or if the run takes no time.
std::string other_orders_text(const Outcome& outcome, const std::vector<OtherOrder>& orders);

}  // namespace plumbline
