// A run in steps. In each step, all possible communication comes first, then the next ops.
//
// SPDX-License-Identifier: MIT
#include "schedules/files/rendezvous.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/bug.h"
#include "schedules/order/replay.h"

namespace plumbline {
namespace {

class Run {
 public:
  Run(const Schedule& schedule, const CommunicationLists& cells)
      : schedule_(schedule),
        cells_(cells),
        lists_(schedule.lists()),
        pairs_(pair_starts(schedule)),
        at_(lists_.size()) {
    for (const auto& list : lists_) left_ += list.size();
  }

  Rendezvous run() {
    Schedule result = schedule_;
    result.issue_order.clear();
    result.waves.clear();
    result.partners.clear();
    result.transfers.clear();
    for (std::uint32_t step = 0; left_ > 0; ++step) {
      communicate(step, result);
      if (!compute(step, result)) return {std::nullopt, hang()};
    }
    communicate_all(result);
    if (!pairs_.empty()) add_partners(result);
    return {std::move(result), {}};
  }

 private:
  /// The place of a slot in its lists.
  struct Place {
    std::size_t op = 0;      ///< Next entry of its op list.
    std::size_t cell = 0;    ///< Next entry of its communication.
    std::uint32_t free = 0;  ///< The step at which its last op has ended.
  };

  /// The communication cell that a slot is at; nullptr where an op is next.
  const CommunicationCell* cell_of(std::uint32_t slot) const {
    const Place& place = at_[slot];
    if (place.cell == cells_[slot].size()) return nullptr;
    const CommunicationCell& cell = cells_[slot][place.cell];
    return cell.before <= place.op ? &cell : nullptr;
  }

  /// The slot of the other end of a cell.
  std::uint32_t other_end(const CommunicationCell& cell) const {
    const bool forward = cell.feeds.kind == OpKind::forward;
    const std::uint32_t fed = cell.feeds.stage.value;
    const std::uint32_t stage = cell.sends ? fed : forward ? fed - 1 : fed + 1;
    return schedule_.shape.slot({stage}, cell.feeds.micro_batch);
  }

  /// Whether both ends of the cell that `slot` is at are there at `step`.
  bool meets(std::uint32_t slot, std::uint32_t step) const {
    const CommunicationCell* const cell = cell_of(slot);
    if (cell == nullptr || at_[slot].free > step) return false;
    const std::uint32_t other = other_end(*cell);
    const CommunicationCell* const its = cell_of(other);
    return its != nullptr && at_[other].free <= step && its->sends != cell->sends &&
           its->feeds == cell->feeds;
  }

  /// Does all communication that is possible before the ops of this step.
  void communicate(std::uint32_t step, Schedule& result) {
    for (std::uint32_t slot = 0; slot < lists_.size(); ++slot) to_try_.push_back(slot);
    std::reverse(to_try_.begin(), to_try_.end());
    while (!to_try_.empty()) {
      const std::uint32_t slot = to_try_.back();
      to_try_.pop_back();
      while (meets(slot, step)) {
        const CommunicationCell& cell = *cell_of(slot);
        const std::uint32_t other = other_end(cell);
        result.transfers.push_back(
            {cell.feeds, static_cast<std::uint32_t>(result.issue_order.size())});
        ++at_[slot].cell;
        ++at_[other].cell;
        to_try_.push_back(other);
      }
    }
  }

  /// Does the communication behind the last op.
  void communicate_all(Schedule& result) {
    std::uint32_t last = 0;
    for (const Place& place : at_) last = std::max(last, place.free);
    communicate(last, result);
  }

  /// Starts the ops of this step; false where nothing can ever go on.
  bool compute(std::uint32_t step, Schedule& result) {
    const std::size_t begin = result.issue_order.size();
    bool any = false;
    for (std::uint32_t slot = 0; slot < lists_.size(); ++slot) {
      Place& place = at_[slot];
      any = any || place.free > step;
      if (place.free > step || place.op == lists_[slot].size() || cell_of(slot)) continue;
      any = true;
      const std::size_t count = !pairs_.empty() && pairs_[slot][place.op] ? 2 : 1;
      for (std::size_t i = 0; i < count; ++i, ++place.op, --left_)
        result.issue_order.push_back(lists_[slot][place.op]);
      place.free = step + static_cast<std::uint32_t>(count);
    }
    if (result.issue_order.size() == begin) return any;
    result.waves.push_back(static_cast<std::uint32_t>(begin));
    if (pairs_.empty()) {
      std::sort(result.issue_order.begin() + static_cast<std::ptrdiff_t>(begin),
                result.issue_order.end(), [](const Op& a, const Op& b) {
                  return a.micro_batch != b.micro_batch ? a.micro_batch < b.micro_batch
                                                        : a.stage < b.stage;
                });
    }
    return true;
  }

  /// Sets the partners. The two ops of a pair are neighbours in the new order.
  void add_partners(Schedule& result) const {
    std::vector<std::size_t> next(lists_.size(), 0);
    for (std::uint32_t i = 0; i < result.issue_order.size(); ++i) {
      const Op& op = result.issue_order[i];
      const std::uint32_t slot = schedule_.shape.slot(op.stage, op.micro_batch);
      const std::size_t at = next[slot]++;
      result.partners.push_back(pairs_[slot][at]                 ? i + 1
                                : at > 0 && pairs_[slot][at - 1] ? i - 1
                                                                 : i);
    }
  }

  Hang hang() const {
    Hang hang;
    for (std::uint32_t slot = 0; slot < lists_.size(); ++slot) {
      const CommunicationCell* const cell = cell_of(slot);
      if (cell == nullptr) continue;
      CommunicationCell wanted = *cell;
      wanted.sends = !cell->sends;
      const std::uint32_t other = other_end(*cell);
      const CommunicationCell* const its = cell_of(other);
      hang.devices.push_back({slot, at_[slot].cell, to_text(wanted), other,
                              its != nullptr ? to_text(*its) : "its end"});
    }
    PLUMBLINE_CHECK(!hang.devices.empty(), schedule_.name);
    return hang;
  }

  const Schedule& schedule_;
  const CommunicationLists& cells_;
  OpLists lists_;
  PairStarts pairs_;
  std::vector<Place> at_;
  std::vector<std::uint32_t> to_try_;
  std::size_t left_ = 0;
};

}  // namespace

Rendezvous in_order_of_cells(const Schedule& schedule, const CommunicationLists& cells) {
  PLUMBLINE_CHECK(cells.size() == schedule.shape.slots, cells.size(), schedule.shape.slots);
  return Run(schedule, cells).run();
}

Diagnostic hang_error(const Hang& hang, const CommunicationLists& cells,
                      const std::function<Mark(std::uint32_t slot, std::size_t cell)>& mark_of) {
  constexpr std::size_t max_listed = 16;
  const auto text = [&](const Hang::Device& device) {
    return to_text(cells[device.slot][device.cell]);
  };
  const Hang::Device& first = hang.devices.front();
  Diagnostic error{
      .mark = mark_of(first.slot, first.cell),
      .message =
          fmt::format("the communication hangs: device {} is at {}, which waits for {} of "
                      "device {}, which is at {}",
                      first.slot, text(first), first.waits_for, first.other, first.other_is_at),
      .help =
          "a send waits for its receive, and each device does its SEND and RECV cells in their "
          "order: move one of these cells, or schedule.communication: free",
      .detail = {},
      .fault = Fault::infeasible};
  for (std::size_t i = 0; i < std::min(hang.devices.size(), max_listed); ++i) {
    const Hang::Device& device = hang.devices[i];
    error.detail +=
        fmt::format("  device {}: {} waits for {} of device {}, which is at {}\n", device.slot,
                    text(device), device.waits_for, device.other, device.other_is_at);
  }
  if (hang.devices.size() > max_listed)
    error.detail += fmt::format("  and {} more devices\n", hang.devices.size() - max_listed);
  return error;
}

}  // namespace plumbline
