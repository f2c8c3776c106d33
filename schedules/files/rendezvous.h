// Communication in the order of its cells: a send waits for its receive.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "schedules/files/schedule_file.h"
#include "schedules/order/schedule.h"

namespace plumbline {

/// The SEND and RECV cells of each slot.
using CommunicationLists = std::vector<std::vector<CommunicationCell>>;

/// The place of every device that cannot go on.
struct Hang {
  struct Device {
    std::uint32_t slot = 0;
    std::size_t cell = 0;     ///< Index of the communication cell that waits.
    std::string waits_for;    ///< The cell that it needs at the other end.
    std::uint32_t other = 0;  ///< The slot of the other end.
    std::string other_is_at;  ///< The cell that the other slot is at.
  };
  std::vector<Device> devices;  ///< Never empty.
};

/// A schedule whose transfers have their own places, or the place where it hangs.
struct Rendezvous {
  std::optional<Schedule> schedule;
  Hang hang;
};

/// Runs the lists of `schedule` with the cells between their ops, every op one step long. Each slot
/// takes its cells in order; a SEND and its RECV happen together, when both ends have reached them.
/// Returns the schedule in the order of that run, with each transfer in its place. Requires: cells
/// that fit the lists (see communication_check.h).
Rendezvous in_order_of_cells(const Schedule& schedule, const CommunicationLists& cells);

/// The hang as an error, Fault::infeasible, with each device's cell and the cell that it waits for.
/// `mark_of(slot, cell)` is the place of a cell.
Diagnostic hang_error(const Hang& hang, const CommunicationLists& cells,
                      const std::function<Mark(std::uint32_t slot, std::size_t cell)>& mark_of);

}  // namespace plumbline
