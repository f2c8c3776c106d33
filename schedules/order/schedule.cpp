// Projections and printed forms of a schedule.
//
// SPDX-License-Identifier: MIT
#include "schedules/order/schedule.h"

#include <fmt/format.h>

#include <algorithm>

#include "schedules/order/replay.h"

namespace plumbline {

std::vector<std::vector<std::uint32_t>> stages_of_slots(
    const std::vector<std::vector<std::uint32_t>>& stage_slots, std::uint32_t slots) {
  std::vector<std::vector<std::uint32_t>> stages(slots);
  for (std::uint32_t s = 0; s < stage_slots.size(); ++s) {
    for (const std::uint32_t slot : stage_slots[s]) stages[slot].push_back(s);
  }
  return stages;
}

PipelineShape pipeline_shape(const Partition& partition, std::uint32_t micro_batches,
                             std::uint32_t slices) {
  const std::vector<DeviceId> devices = devices_in_use(partition);
  PipelineShape shape;
  shape.positions = positions(partition);
  shape.slots = static_cast<std::uint32_t>(devices.size());
  shape.micro_batches = micro_batches;
  shape.slices = slices;
  for (const Stage& stage : partition.stages) {
    std::vector<std::uint32_t>& slots = shape.stage_slots.emplace_back();
    for (const DeviceId device : stage.devices) {
      slots.push_back(static_cast<std::uint32_t>(
          std::lower_bound(devices.begin(), devices.end(), device) - devices.begin()));
    }
  }
  return shape;
}

OpLists Schedule::lists() const {
  OpLists lists(shape.slots);
  for (const Op& op : issue_order) lists[shape.slot(op.stage, op.micro_batch)].push_back(op);
  return lists;
}

std::string list_grid(const OpLists& lists, std::uint32_t marked_slot, std::size_t marked_index) {
  constexpr std::size_t max_rows = 16;
  constexpr std::size_t max_columns = 16;
  const std::size_t first_column =
      marked_index > max_columns / 2 ? marked_index - max_columns / 2 : 0;
  const std::size_t first_row = marked_slot > max_rows / 2 ? marked_slot - max_rows / 2 : 0;
  const std::size_t end_row = std::min(lists.size(), first_row + max_rows);
  std::size_t width = 0;
  for (std::size_t slot = first_row; slot < end_row; ++slot) {
    for (std::size_t i = first_column; i < std::min(lists[slot].size(), first_column + max_columns);
         ++i) {
      width = std::max(width, to_text(lists[slot][i]).size());
    }
  }
  std::string grid;
  for (std::size_t slot = first_row; slot < end_row; ++slot) {
    const std::vector<Op>& list = lists[slot];
    std::string row = fmt::format("  device {:<3} |{}", slot, first_column > 0 ? " ..." : "");
    std::string carets(row.size(), ' ');
    for (std::size_t i = first_column; i < std::min(list.size(), first_column + max_columns); ++i) {
      row += fmt::format(" {:<{}}", to_text(list[i]), width);
      carets += ' ' + std::string(width, slot == marked_slot && i == marked_index ? '^' : ' ');
    }
    if (list.size() > first_column + max_columns) row += " ...";
    if (slot == marked_slot && marked_index >= list.size())
      carets = std::string(row.size() + 1, ' ') + "^";
    while (!row.empty() && row.back() == ' ') row.pop_back();
    grid += row + '\n';
    if (slot == marked_slot) {
      while (!carets.empty() && carets.back() == ' ') carets.pop_back();
      grid += carets + '\n';
    }
  }
  return grid;
}

namespace {

/// The steps of a block of the grid, and the width of a cell.
struct GridBlock {
  std::uint32_t first;
  std::uint32_t end;
  std::size_t cell;
};

/// A device's row. It ends with its last op.
std::string grid_row(std::string row, const std::vector<Op>& list,
                     const std::vector<std::uint32_t>& steps, GridBlock block) {
  auto next = static_cast<std::size_t>(std::lower_bound(steps.begin(), steps.end(), block.first) -
                                       steps.begin());
  for (std::uint32_t step = block.first; step < block.end && next < list.size(); ++step) {
    const bool runs = steps[next] == step;
    row += fmt::format(" {:>{}}", runs ? to_text(list[next]) : ".", block.cell);
    next += runs ? 1 : 0;
  }
  return row + '\n';
}

}  // namespace

Result<std::string> replay_grid(const Schedule& schedule, const std::vector<std::string>& names,
                                PageWidth width) {
  const OpLists lists = schedule.lists();
  const ReplayTimes times = replay_times(schedule);
  std::uint32_t steps = 0;
  std::size_t cell = 0;
  for (std::size_t slot = 0; slot < lists.size(); ++slot) {
    if (!times[slot].empty()) steps = std::max(steps, times[slot].back() + 1);
    for (const Op& op : lists[slot]) cell = std::max(cell, to_text(op).size());
  }
  if (std::size_t{steps} * lists.size() > kMaxCells) {
    return input_error(
        {},
        fmt::format(
            "the grid would have {} steps for {} devices, more cells than the {} that are printed",
            steps, lists.size(), kMaxCells),
        "--format torch-csv and --format sequence have no such limit");
  }
  std::size_t name_width = 4;
  for (const std::string& name : names) name_width = std::max(name_width, name.size());
  const std::size_t room = width && *width > name_width + 2 ? *width - name_width - 2 : 0;
  const std::uint32_t in_block =
      width ? static_cast<std::uint32_t>(std::max<std::size_t>(room / (cell + 1), 1)) : steps;
  std::string grid;
  for (std::uint32_t first = 0; first < steps; first += in_block) {
    const std::uint32_t end = std::min(steps, first + in_block);
    grid += fmt::format("{}{:<{}} |", first > 0 ? "\n" : "", "step", name_width);
    for (std::uint32_t step = first; step < end; ++step) grid += fmt::format(" {:>{}}", step, cell);
    grid += '\n';
    for (std::size_t slot = 0; slot < lists.size(); ++slot)
      grid += grid_row(fmt::format("{:<{}} |", names[slot], name_width), lists[slot], times[slot],
                       {first, end, cell});
  }
  return grid;
}

std::string torch_csv(const Schedule& schedule) {
  std::string csv;
  const OpLists lists = schedule.lists();
  const PairStarts pairs = pair_starts(schedule);
  for (std::size_t slot = 0; slot < lists.size(); ++slot) {
    const std::vector<Op>& list = lists[slot];
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i > 0) csv += ',';
      if (pairs.empty() || !pairs[slot][i]) {
        csv += to_text(list[i]);
        continue;
      }
      csv += fmt::format("({};{})OVERLAP_F_B", to_text(list[i]), to_text(list[i + 1]));
      ++i;
    }
    csv += '\n';
  }
  return csv;
}

std::string issue_sequence(const Schedule& schedule) {
  std::string sequence;
  const std::uint32_t last = schedule.shape.stages() - 1;
  for (const Op& op : schedule.issue_order) {
    if (schedule.host_loop) {  // one word for the whole model, printed at the loop's first stage
      const bool begins = op.stage.value == (op.kind == OpKind::forward ? 0 : last);
      if (!begins) continue;
    }
    if (!sequence.empty()) sequence += ' ';
    sequence +=
        schedule.host_loop ? to_text(op).substr(to_text(op).find(letter(op.kind))) : to_text(op);
  }
  return sequence + '\n';
}

}  // namespace plumbline
