// What the same stages and costs take in the orders of other schedules.
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
  std::optional<double> iteration_time_s;  ///< Nothing where it cannot run; see why_not.
  Bytes peak_memory{};                     ///< Of the device that needs most.
  std::optional<bool> fits;                ///< Nothing without a memory size.
  std::uint32_t stages = 0;
  bool assumes_split = false;  ///< It splits backwards, and some layer does not say how.
  std::string why_not;         ///< "it uses other devices"; "" = it ran.

  /// Whether it is known not to fit the memory.
  bool is_too_large() const { return fits == false; }
};

/// The run of `outcome` under each of the other named schedules: on its devices, with as many
/// micro-batches; with its stages and as many layers recomputed where the schedule places stages
/// so, else with the stages that the scenario has under that name. Best first; then those that
/// cannot run, in the order of the list of schedules. Asynchronous schedules stand beside
/// asynchronous ones only: what they train is another model. `overrides` are those with which
/// `scenario` was read: it is read again with the name of each schedule. One longest path a
/// schedule. Nothing for the schedule 'data-parallel', which has no pipeline.
std::vector<OtherOrder> other_orders(const Scenario& scenario,
                                     const std::vector<std::string>& overrides,
                                     const Outcome& outcome);

/// Those that beat the run, how, and what they need; or that none does. "" where none can run, or
/// the run takes no time.
std::string other_orders_text(const Outcome& outcome, const std::vector<OtherOrder>& orders);

}  // namespace plumbline
