// From cells to lists: the rows of each stage, the number of micro-batches, and notes.
//
// SPDX-License-Identifier: MIT
#include "schedules/files/schedule_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/bug.h"
#include "schedules/files/communication_check.h"
#include "schedules/files/stage_rows.h"
#include "schedules/files/torch_csv.h"

namespace plumbline {
namespace {

/// Files that need fewer ops than this are always accepted; check.h reports missing ops.
constexpr std::uint64_t kFewOps = 1'000'000;

OpLists lists_of(const TorchCells& cells) {
  OpLists lists(cells.rows.size());
  for (std::size_t row = 0; row < cells.rows.size(); ++row) {
    for (const TorchCell& cell : cells.rows[row]) {
      if (!is_compute(cell.kind)) continue;
      lists[row].push_back({static_cast<OpKind>(cell.kind), {cell.stage}, {cell.micro_batch}});
    }
  }
  return lists;
}

PairStarts pairs_of(const TorchCells& cells) {
  PairStarts pairs;
  if (cells.overlapped == 0) return pairs;
  pairs.resize(cells.rows.size());
  for (std::size_t row = 0; row < cells.rows.size(); ++row) {
    for (const TorchCell& cell : cells.rows[row]) {
      if (is_compute(cell.kind)) pairs[row].push_back(cell.begins_pair);
    }
  }
  return pairs;
}

static_assert(static_cast<int>(CellKind::backward_weight) ==
              static_cast<int>(OpKind::backward_weight));

/// The number M of micro-batches, if the ops of a row are F1..F(M) and B0..B(M-1) of this stage,
/// each in order; else nothing.
std::optional<std::uint32_t> shifted_by_one(const std::vector<Op>& list, std::uint32_t stage) {
  std::uint32_t forwards = 0;
  std::uint32_t backwards = 0;
  for (const Op& op : list) {
    if (op.stage.value != stage) return std::nullopt;
    if (op.kind == OpKind::forward) {
      if (op.micro_batch.value != ++forwards) return std::nullopt;
    } else if (op.kind != OpKind::backward || op.micro_batch.value != backwards++) {
      return std::nullopt;
    }
  }
  if (forwards == 0 || forwards != backwards) return std::nullopt;
  return forwards;
}

/// The error for PyTorch's Schedule1F1B. It writes the forwards of its last rank with numbers from
/// 1, but runs them with numbers from 0.
std::optional<Diagnostic> shifted_last_row(const TorchCells& cells, const OpLists& lists,
                                           const StageRows& rows) {
  const std::uint32_t stage = rows.stages() - 1;
  const std::uint32_t row = rows.of(stage).front();
  const auto micro_batches = shifted_by_one(lists[row], stage);
  if (!micro_batches) return std::nullopt;
  for (std::size_t other = 0; other < lists.size(); ++other) {
    const auto beyond = [&](const Op& op) { return op.micro_batch.value >= *micro_batches; };
    if (other != row && std::any_of(lists[other].begin(), lists[other].end(), beyond)) {
      return std::nullopt;
    }
  }
  constexpr std::size_t max_shown = 8;
  std::string right;
  for (std::size_t i = 0; i < std::min(lists[row].size(), max_shown); ++i) {
    Op op = lists[row][i];
    if (op.kind == OpKind::forward) --op.micro_batch.value;
    right += (i == 0 ? "" : ",") + to_text(op);
  }
  if (lists[row].size() > max_shown) right += ",...";
  const auto& list = lists[row];
  const auto first_backward = std::find_if(
      list.begin(), list.end(), [](const Op& op) { return op.kind == OpKind::backward; });
  const auto position = static_cast<std::size_t>(first_backward - list.begin());
  const auto& row_cells = cells.rows[row];
  const auto cell = std::find_if(row_cells.begin(), row_cells.end(),
                                 [](const TorchCell& c) { return c.kind == CellKind::backward; });
  return Diagnostic{
      .mark = {cells.source, static_cast<int>(cell->line), static_cast<int>(cell->column),
               static_cast<int>(cell->length)},
      .message = fmt::format("B0 before F0 on stage {}; micro-batch {} is out of range (0 to {})",
                             stage, *micro_batches, *micro_batches - 1),
      .help = fmt::format(
          "PyTorch's Schedule1F1B exports its last rank so, though its runtime runs F0 to F{}: "
          "take 1 from the micro-batch of every F of row {}, which then reads {}",
          *micro_batches - 1, row + 1, right),
      .detail = list_grid(lists, row, position),
      .fault = Fault::input};
}

/// The error for a number of micro-batches that needs much memory but far more ops than the file
/// has.
std::optional<Diagnostic> absurd_size(const TorchCells& cells, std::uint32_t stages) {
  const PlacedCell last = highest(cells, [](const TorchCell& cell) { return cell.micro_batch; });
  const std::uint64_t micro_batches = std::uint64_t{last.cell->micro_batch} + 1;
  const std::uint64_t needed = 2 * micro_batches * stages;
  if (needed < kFewOps || needed / 2 <= cells.ops) return std::nullopt;
  return cell_error(cells, last.row, *last.cell,
                    fmt::format("with micro-batches up to {} on every stage the schedule would "
                                "need {} ops, but the file has {}",
                                last.cell->micro_batch, needed, cells.ops));
}

/// The number of cells of each kind that occurs: `2 UNSHARD, 1 RESHARD`.
std::string counted(const TorchCells& cells,
                    const std::vector<std::pair<CellKind, const char*>>& of, std::size_t& all) {
  std::string text;
  all = 0;
  for (const auto& [kind, name] : of) {
    std::size_t count = 0;
    for (const auto& row : cells.rows) {
      count += static_cast<std::size_t>(
          std::count_if(row.begin(), row.end(),
                        [wanted = kind](const TorchCell& cell) { return cell.kind == wanted; }));
    }
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name);
    all += count;
  }
  return text;
}

std::vector<std::string> notes_of(const TorchCells& cells) {
  std::vector<std::string> notes;
  if (!cells.order_of_rows.empty()) notes.push_back(cells.order_of_rows);
  if (cells.old_letters) {
    notes.emplace_back(
        "letters: PyTorch's old ones, B for the backward for the input (I here), W for the "
        "weights, BW for both (B here)");
  }
  if (cells.overlapped > 0) {
    notes.push_back(fmt::format(
        "overlapped pairs: {}, whose ops run one after the other, unless schedule.pairs "
        "is overlapped",
        cells.overlapped));
  }
  std::size_t all = 0;
  const std::string unused = counted(cells,
                                     {{CellKind::unshard, "UNSHARD"},
                                      {CellKind::reshard, "RESHARD"},
                                      {CellKind::reduce_gradients, "REDUCE_GRAD"}},
                                     all);
  if (all > 0) {
    notes.push_back(
        fmt::format("cells that are not used: {} ({}); training.zero_stage and "
                    "plan.data_parallel say what is gathered and reduced",
                    all, unused));
  }
  return notes;
}

/// The SEND and RECV cells of each row; empty where there are none.
std::vector<std::vector<CommunicationCell>> communication_of(const TorchCells& cells) {
  std::vector<std::vector<CommunicationCell>> rows(cells.rows.size());
  bool any = false;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    std::uint32_t before = 0;
    for (const TorchCell& cell : cells.rows[row]) {
      if (is_compute(cell.kind)) ++before;
      if (!is_transfer(cell.kind)) continue;
      any = true;
      const bool forward =
          cell.kind == CellKind::send_forward || cell.kind == CellKind::receive_forward;
      const bool sends =
          cell.kind == CellKind::send_forward || cell.kind == CellKind::send_backward;
      const std::uint32_t fed = !sends ? cell.stage : forward ? cell.stage + 1 : cell.stage - 1;
      rows[row].push_back(
          {before,
           sends,
           {forward ? OpKind::forward : OpKind::backward, {fed}, {cell.micro_batch}}});
    }
  }
  if (!any) rows.clear();
  return rows;
}

/// The error for a cell of communication in a sequence.
std::optional<Diagnostic> check_communication(const TorchCells& cells) {
  for (const TorchCell& cell : cells.rows.front()) {
    if (!is_transfer(cell.kind)) continue;
    return cell_error(cells, 0, cell, "a SEND or RECV stands in a sequence of one host",
                      "leave them out: each op brings its own transfers; or one row a device");
  }
  return std::nullopt;
}

/// A sequence; its rows are given later.
Result<ScheduleFile> sequence_of(const TorchCells& cells, std::uint32_t micro_batches) {
  if (auto fault = check_communication(cells)) return *std::move(fault);
  if (auto fault = check_missing_stages(cells)) return *std::move(fault);
  const bool is_loop = cells.form == OrderForm::host_loop;
  const std::uint32_t stages =
      highest(cells, [](const TorchCell& cell) { return cell.stage; }).cell->stage + 1;
  if (auto fault = absurd_size(cells, stages)) return *std::move(fault);
  ScheduleFile file{.name = std::filesystem::path(cells.source->name).stem().string(),
                    .source = cells.source,
                    .form = cells.form,
                    .stages = is_loop ? 0 : stages,
                    .micro_batches = micro_batches,
                    .rows = StageRows{},
                    .lists = {},
                    .pairs = {},
                    .communication = {},
                    .sequence = std::move(lists_of(cells).front()),
                    .devices = cells.devices,
                    .notes = notes_of(cells)};
  if (file.devices.size() != stages && !is_loop) file.devices.clear();
  return file;
}

/// The compute cells of a row, or those that a sequence's host launches on a device.
std::vector<TorchCell> cells_of_device(const ScheduleFile& file, std::uint32_t device) {
  const auto read = read_torch_cells(file.source);
  PLUMBLINE_CHECK(read, file.source->name);
  std::vector<TorchCell> cells;
  const std::vector<TorchCell>& row = read->rows[file.is_sequence() ? 0 : device];
  for (const TorchCell& cell : row) {
    if (!is_compute(cell.kind)) continue;
    if (!file.is_sequence()) {
      cells.push_back(cell);
      continue;
    }
    const bool is_loop = file.form == OrderForm::host_loop;
    for (std::uint32_t s = 0; s < (is_loop ? file.stages : 1); ++s) {
      if (file.rows.row(is_loop ? s : cell.stage, cell.micro_batch) == device)
        cells.push_back(cell);
    }
  }
  return cells;
}

Mark mark_at(const ScheduleFile& file, const TorchCell& cell) {
  return {file.source, static_cast<int>(cell.line), static_cast<int>(cell.column),
          static_cast<int>(cell.length)};
}

}  // namespace

std::string to_text(const CommunicationCell& cell) {
  const bool forward = cell.feeds.kind == OpKind::forward;
  const std::uint32_t fed = cell.feeds.stage.value;
  const std::uint32_t stage = !cell.sends ? fed : forward ? fed - 1 : fed + 1;
  return fmt::format("{}{}_{}{}", stage, cell.sends ? "SEND" : "RECV", forward ? 'F' : 'B',
                     cell.feeds.micro_batch.value);
}

Result<ScheduleFile> parse_schedule_file(std::shared_ptr<const Source> source) {
  auto cells = read_torch_cells(std::move(source));
  if (!cells) return cells.problems();
  const PlacedCell last = highest(*cells, [](const TorchCell& cell) { return cell.micro_batch; });
  const std::uint32_t micro_batches = last.cell->micro_batch + 1;
  if (cells->is_sequence()) return sequence_of(*cells, micro_batches);
  std::vector<std::string> notes = notes_of(*cells);
  if (auto note = number_in_turn(*cells, micro_batches)) notes.push_back(*std::move(note));
  auto rows = rows_of_stages(*cells, micro_batches);
  if (!rows) return rows.problems();
  // From here on the rows of each stage are known.
  OpLists lists = lists_of(*cells);
  PairStarts pairs = pairs_of(*cells);
  if (auto fault = shifted_last_row(*cells, lists, *rows)) return *std::move(fault);
  Diagnostics problems = communication_faults(*cells, *rows);
  if (auto fault = absurd_size(*cells, rows->stages());
      fault && problems.size() < kMaxCsvProblems) {
    problems.push_back(*std::move(fault));
  }
  if (!problems.empty()) return problems;
  return ScheduleFile{.name = std::filesystem::path(cells->source->name).stem().string(),
                      .source = cells->source,
                      .form = cells->form,
                      .stages = rows->stages(),
                      .micro_batches = micro_batches,
                      .rows = *rows,
                      .lists = std::move(lists),
                      .pairs = std::move(pairs),
                      .communication = communication_of(*cells),
                      .sequence = {},
                      .devices = {},
                      .notes = std::move(notes)};
}

Result<ScheduleFile> read_schedule_file(const std::string& path) {
  auto source = read_file(path, kLargestScheduleFile);
  if (!source) return source.problems();
  return parse_schedule_file(*source);
}

std::optional<Diagnostic> place_sequence(ScheduleFile& file, StageRows rows) {
  PLUMBLINE_CHECK(file.is_sequence() && rows.stages() > 0, rows.stages());
  PLUMBLINE_CHECK(file.form == OrderForm::host_loop || rows.stages() == file.stages, rows.stages(),
                  file.stages);
  if (file.form == OrderForm::host_loop) {
    const std::uint32_t stages = rows.stages();
    if (file.sequence.size() * stages > kMaxCsvCells) {
      return input_error({file.source},
                         fmt::format("is a loop of {} ops over {} stages, more ops than the {} "
                                     "that are read",
                                     file.sequence.size(), stages, kMaxCsvCells));
    }
    std::vector<Op> all;
    all.reserve(file.sequence.size() * stages);
    for (const Op& op : file.sequence) {
      for (std::uint32_t i = 0; i < stages; ++i)
        all.push_back({op.kind, {op.kind == OpKind::forward ? i : stages - 1 - i}, op.micro_batch});
    }
    file.sequence = std::move(all);
  }
  std::uint32_t devices = 0;
  for (std::uint32_t s = 0; s < rows.stages(); ++s) {
    for (const std::uint32_t row : rows.of(s)) devices = std::max(devices, row + 1);
  }
  file.stages = rows.stages();
  file.rows = std::move(rows);
  file.lists.assign(devices, {});
  for (const Op& op : file.sequence)
    file.lists[file.rows.row(op.stage.value, op.micro_batch.value)].push_back(op);
  return std::nullopt;
}

Mark mark_of(const ScheduleFile& file, std::uint32_t device, std::size_t position) {
  const std::vector<TorchCell> cells = cells_of_device(file, device);
  if (position < cells.size()) return mark_at(file, cells[position]);
  const int line = cells.empty() ? 1 : static_cast<int>(cells.back().line);
  return {file.source, line, static_cast<int>(file.source->line(line).size()) + 1, 1};
}

Mark mark_of_communication(const ScheduleFile& file, std::uint32_t device, std::size_t index) {
  const auto read = read_torch_cells(file.source);
  PLUMBLINE_CHECK(read, file.source->name);
  for (const TorchCell& cell : read->rows[device]) {
    if (is_transfer(cell.kind) && index-- == 0) return mark_at(file, cell);
  }
  return {file.source};
}

}  // namespace plumbline
