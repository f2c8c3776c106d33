// The checks of a schedule. Each error shows the lists around its place.
//
// SPDX-License-Identifier: MIT
#include "schedules/order/check.h"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "schedules/order/replay.h"

namespace plumbline {
namespace {

constexpr std::size_t kMaxFaults = 20;

class Checker {
 public:
  Checker(const PipelineShape& shape, const OpLists& lists, const MarkOfOp& mark_of_op)
      : shape_(shape),
        lists_(lists),
        mark_of_op_(mark_of_op),
        seen_(std::size_t{shape.stages()} * shape.micro_batches) {}

  Diagnostics check() {
    for (std::uint32_t slot = 0; slot < lists_.size(); ++slot) {
      for (std::size_t i = 0; i < lists_[slot].size() && faults_.size() < kMaxFaults; ++i)
        check_op(slot, i);
    }
    if (faults_.empty()) check_complete();
    return std::move(faults_);
  }

 private:
  void fault(std::uint32_t slot, std::size_t index, std::string message) {
    faults_.push_back({.mark = mark_of_op_(slot, index),
                       .message = std::move(message),
                       .help = {},
                       .detail = list_grid(lists_, slot, index),
                       .fault = Fault::input});
  }

  void check_op(std::uint32_t slot, std::size_t index) {
    const Op& op = lists_[slot][index];
    const auto refuse = [&](const std::string& why) {
      fault(slot, index,
            fmt::format("device {}, position {}: {} {}", slot, index, to_text(op), why));
    };
    if (op.stage.value >= shape_.stages()) {
      return refuse(fmt::format("names a stage out of range (0 to {})", shape_.stages() - 1));
    }
    if (op.micro_batch.value >= shape_.micro_batches) {
      return refuse(
          fmt::format("names a micro-batch out of range (0 to {})", shape_.micro_batches - 1));
    }
    const std::uint32_t right_slot = shape_.slot(op.stage, op.micro_batch);
    if (right_slot != slot) {
      return refuse(fmt::format("belongs on device {}", right_slot));
    }
    bool& seen = seen_[std::size_t{op.stage.value} * shape_.micro_batches + op.micro_batch.value]
                      [static_cast<std::size_t>(op.kind)];
    if (seen) refuse("stands here a second time");
    seen = true;
  }

  void check_complete() {
    for (std::uint32_t s = 0; s < shape_.stages(); ++s) {
      for (std::uint32_t m = 0; m < shape_.micro_batches && faults_.size() < kMaxFaults; ++m) {
        const auto& [forward, backward, input, weight] =
            seen_[std::size_t{s} * shape_.micro_batches + m];
        const std::uint32_t slot = shape_.slot({s}, {m});
        const auto missing = [&](OpKind kind, std::string_view what) {
          fault(slot, lists_[slot].size(),
                fmt::format("device {}, position {}: {} {}", slot, lists_[slot].size(),
                            to_text(Op{kind, {s}, {m}}), what));
        };
        if (!forward) missing(OpKind::forward, "is missing");
        if (backward && (input || weight))
          missing(OpKind::backward, "stands beside its own parts I and W");
        if (!backward && !input)
          missing(weight ? OpKind::backward_input : OpKind::backward, "is missing");
        if (input && !weight && !backward) missing(OpKind::backward_weight, "is missing");
      }
    }
  }

  const PipelineShape& shape_;
  const OpLists& lists_;
  const MarkOfOp& mark_of_op_;
  std::vector<std::array<bool, 4>> seen_;
  Diagnostics faults_;
};

/// The op that `op` waits for; "" for a backward (or I), which the caller resolves.
std::string waits_for(const Op& op) {
  switch (op.kind) {
    case OpKind::forward:
      return to_text(Op{OpKind::forward, {op.stage.value - 1}, op.micro_batch});
    case OpKind::backward_weight:
      return to_text(Op{OpKind::backward_input, op.stage, op.micro_batch});
    default:
      return "";
  }
}

Diagnostic deadlock(const PipelineShape& shape, const OpLists& lists,
                    const std::vector<std::size_t>& done, const MarkOfOp& mark_of_op) {
  const auto has_run = [&](const Op& wanted) {
    const std::uint32_t slot = shape.slot(wanted.stage, wanted.micro_batch);
    for (std::size_t i = 0; i < done[slot]; ++i) {
      const Op& op = lists[slot][i];
      const bool same_kind = op.kind == wanted.kind ||
                             (wanted.kind == OpKind::backward && op.kind == OpKind::backward_input);
      if (same_kind && op.stage == wanted.stage && op.micro_batch == wanted.micro_batch)
        return true;
    }
    return false;
  };
  Diagnostic found{.mark = {}, .message = {}, .help = {}, .detail = {}, .fault = Fault::infeasible};
  std::optional<std::uint32_t> first;
  std::size_t told = 0;
  for (std::uint32_t slot = 0; slot < lists.size(); ++slot) {
    if (done[slot] == lists[slot].size()) continue;
    const Op& next = lists[slot][done[slot]];
    std::string wait = waits_for(next);
    if (wait.empty()) {
      const Op own{OpKind::forward, next.stage, next.micro_batch};
      wait = has_run(own) ? to_text(Op{OpKind::backward, {next.stage.value + 1}, next.micro_batch})
                          : to_text(own);
    }
    if (!first) {
      first = slot;
      found.mark = mark_of_op(slot, done[slot]);
      found.message = fmt::format(
          "the schedule deadlocks: device {}, position {}: {} waits for {}, which never runs", slot,
          done[slot], to_text(next), wait);
    }
    if (++told <= 16)
      found.detail +=
          fmt::format("  device {}: next is {}, which waits for {}\n", slot, to_text(next), wait);
  }
  if (told > 16) found.detail += fmt::format("  and {} more devices\n", told - 16);
  found.detail += list_grid(lists, *first, done[*first]);
  return found;
}

}  // namespace

Result<Schedule> checked_schedule(std::string name, bool asynchronous, const PipelineShape& shape,
                                  const OpLists& lists, const Mark& mark) {
  return checked_schedule(std::move(name), asynchronous, shape, lists,
                          [&](std::uint32_t, std::size_t) { return mark; });
}

Result<Schedule> checked_schedule(std::string name, bool asynchronous, const PipelineShape& shape,
                                  const OpLists& lists, const MarkOfOp& mark_of_op) {
  if (Diagnostics faults = Checker(shape, lists, mark_of_op).check(); !faults.empty())
    return faults;
  const Replay replayed = replay(shape, lists);
  if (!replayed.complete) return deadlock(shape, lists, replayed.done, mark_of_op);
  Schedule schedule{std::move(name), asynchronous, false, shape, {}, {}};
  order_by_replay(lists, replayed.start, schedule.issue_order, schedule.waves);
  return schedule;
}

}  // namespace plumbline
