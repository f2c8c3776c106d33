// Turns rows into slots, and keeps the order of a sequence.
//
// SPDX-License-Identifier: MIT
#include "sim/setup/file_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "schedules/files/rendezvous.h"
#include "schedules/order/check.h"

namespace plumbline {
namespace {

/// The slot of each row of a file.
std::vector<std::uint32_t> slots_of_rows(const ScheduleFile& file, const PipelineShape& shape) {
  std::vector<std::vector<std::uint32_t>> placed;
  for (std::uint32_t s = 0; s < file.stages; ++s) placed.push_back(file.rows.of(s));
  return slots_of(placed, shape);
}

/// The index of the first op of a sequence that comes before an op that it needs; nothing if there
/// is none.
std::optional<std::size_t> too_early(const std::vector<Op>& sequence, const PipelineShape& shape) {
  const std::size_t all = std::size_t{shape.stages()} * shape.micro_batches;
  std::vector<bool> forward(all, false);
  std::vector<bool> backward(all, false);
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    const Op& op = sequence[i];
    const std::uint32_t s = op.stage.value;
    const std::size_t at = std::size_t{s} * shape.micro_batches + op.micro_batch.value;
    bool ready = true;
    if (op.kind == OpKind::forward) {
      ready = s == 0 || forward[at - shape.micro_batches];
      forward[at] = true;
    } else if (op.kind == OpKind::backward_weight) {
      ready = backward[at];
    } else {
      ready = forward[at] && (s + 1 == shape.stages() || backward[at + shape.micro_batches]);
      backward[at] = true;
    }
    if (!ready) return i;
  }
  return std::nullopt;
}

/// Gives the schedule the order of a sequence: the order in which one host launches it. Errors: an
/// op before an op that it needs.
std::optional<Diagnostic> keep_sequence(const ScheduleFile& file, Schedule& schedule) {
  if (const auto i = too_early(file.sequence, schedule.shape)) {
    const Op& op = file.sequence[*i];
    const std::uint32_t device = file.rows.row(op.stage.value, op.micro_batch.value);
    std::size_t position = 0;
    for (std::size_t before = 0; before < *i; ++before) {
      const Op& other = file.sequence[before];
      position += file.rows.row(other.stage.value, other.micro_batch.value) == device ? 1 : 0;
    }
    Diagnostic error =
        input_error(mark_of(file, device, position),
                    fmt::format("op {}: {} stands before what it needs", *i + 1, to_text(op)),
                    "a host launches an op when what it needs has been launched");
    error.fault = Fault::infeasible;
    return error;
  }
  schedule.host_loop = file.form == OrderForm::host_loop;
  // A replayed order may be printed as a sequence, too. It then matches here and keeps its waves.
  if (!schedule.host_loop && schedule.issue_order == file.sequence) return std::nullopt;
  schedule.issue_order = file.sequence;
  schedule.waves.resize(file.sequence.size());
  std::iota(schedule.waves.begin(), schedule.waves.end(), 0U);
  return std::nullopt;
}

}  // namespace

std::vector<std::uint32_t> slots_of(const std::vector<std::vector<std::uint32_t>>& placed,
                                    const PipelineShape& shape) {
  std::vector<std::uint32_t> slots(shape.slots);
  for (std::size_t s = 0; s < placed.size(); ++s) {
    for (std::size_t r = 0; r < placed[s].size(); ++r)
      slots[placed[s][r]] = shape.stage_slots[s][r];
  }
  return slots;
}

OpLists by_slot(const OpLists& lists, const std::vector<std::uint32_t>& slots) {
  OpLists result(lists.size());
  for (std::size_t device = 0; device < lists.size(); ++device)
    result[slots[device]] = lists[device];
  return result;
}

std::optional<Diagnostics> add_order_of_file(const Scenario& scenario, const PipelineShape& shape,
                                             TrainingSetup& setup) {
  const ScheduleChoice& choice = scenario.schedule;
  const ScheduleFile& file = *choice.file;
  if (scenario.plan.warm_up) {
    return Diagnostics{input_error(scenario.plan.warm_up->mark,
                                   "plan.warm_up does not apply to an order from schedule.file")};
  }
  if (auto refused = check_slices_in(choice.slices, file)) return Diagnostics{*std::move(refused)};
  const std::vector<std::uint32_t> slots = slots_of_rows(file, shape);
  const auto row_of = [&](std::uint32_t slot) {
    return static_cast<std::uint32_t>(std::find(slots.begin(), slots.end(), slot) - slots.begin());
  };
  auto schedule = checked_schedule(
      file.name, false, shape, by_slot(file.lists, slots),
      [&](std::uint32_t slot, std::size_t index) { return mark_of(file, row_of(slot), index); });
  if (!schedule) return schedule.problems();
  setup.schedule = *std::move(schedule);
  if (!file.is_sequence()) return std::nullopt;
  if (auto wrong = keep_sequence(file, setup.schedule)) return Diagnostics{*std::move(wrong)};
  return std::nullopt;
}

std::optional<Diagnostics> order_communication(const Scenario& scenario, TrainingSetup& setup) {
  const ScheduleChoice& choice = scenario.schedule;
  if (!choice.file || choice.file->communication.empty()) return std::nullopt;
  // Rows with cells are slots. Only sequences have rows that differ from slots, and they have no
  // cells.
  const CommunicationLists& cells = choice.file->communication;
  Rendezvous met = in_order_of_cells(setup.schedule, cells);
  if (met.schedule) {
    if (choice.in_order) setup.schedule = *std::move(met.schedule);
    return std::nullopt;
  }
  Diagnostic error = hang_error(met.hang, cells, [&](std::uint32_t slot, std::size_t cell) {
    return mark_of_communication(*choice.file, slot, cell);
  });
  if (choice.in_order) return Diagnostics{std::move(error)};
  setup.notes.push_back(fmt::format("in the order of the SEND and RECV cells {}", error.message));
  return std::nullopt;
}

}  // namespace plumbline
