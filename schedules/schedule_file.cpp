// From cells to lists: where each stage stands, how many micro-batches there are, and what to tell.
// SPDX-License-Identifier: MIT
#include "schedules/schedule_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "models/bug.h"
#include "schedules/communication_check.h"
#include "schedules/csv_cells.h"

namespace plumbline {
namespace {

/// A run of fewer ops than this is held whatever the file is like: check.h tells what is missing.
constexpr std::uint64_t kFewOps = 1'000'000;

/// A cell and its row.
struct PlacedCell {
  std::size_t row = 0;
  const CsvCell* cell = nullptr;
};

/// The first op for which `value` is highest. Requires: there is an op.
template <class Value>
PlacedCell highest(const CsvCells& cells, Value value) {
  PlacedCell best;
  for (std::size_t row = 0; row < cells.rows.size(); ++row) {
    for (const CsvCell& cell : cells.rows[row]) {
      if (!is_compute(cell.kind)) continue;
      if (best.cell == nullptr || value(cell) > value(*best.cell)) best = {row, &cell};
    }
  }
  PLUMBLINE_CHECK(best.cell != nullptr, cells.rows.size());
  return best;
}

OpLists lists_of(const CsvCells& cells) {
  OpLists lists(cells.rows.size());
  for (std::size_t row = 0; row < cells.rows.size(); ++row) {
    for (const CsvCell& cell : cells.rows[row]) {
      if (!is_compute(cell.kind)) continue;
      lists[row].push_back({static_cast<OpKind>(cell.kind), {cell.stage}, {cell.micro_batch}});
    }
  }
  return lists;
}

PairStarts pairs_of(const CsvCells& cells) {
  PairStarts pairs;
  if (cells.overlapped == 0) return pairs;
  pairs.resize(cells.rows.size());
  for (std::size_t row = 0; row < cells.rows.size(); ++row) {
    for (const CsvCell& cell : cells.rows[row]) {
      if (is_compute(cell.kind)) pairs[row].push_back(cell.begins_pair);
    }
  }
  return pairs;
}

static_assert(static_cast<int>(CellKind::backward_weight) ==
              static_cast<int>(OpKind::backward_weight));

/// How many rows each stage stands in; 0 for one without ops.
std::vector<std::uint32_t> row_counts(const CsvCells& cells, std::uint32_t stages) {
  constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();
  std::vector<std::uint32_t> counts(stages, 0);
  std::vector<std::size_t> seen(stages, nowhere);
  for (std::size_t row = 0; row < cells.rows.size(); ++row) {
    for (const CsvCell& cell : cells.rows[row]) {
      if (!is_compute(cell.kind) || seen[cell.stage] == row) continue;
      seen[cell.stage] = row;
      ++counts[cell.stage];
    }
  }
  return counts;
}

/// The rows of stages, and the stages whose rows are not those of replicas.
struct PlacedStages {
  StageRows rows;
  std::vector<bool> torn;
};

/// Each replica is where its first micro-batch is.
PlacedStages find_rows(const CsvCells& cells, const std::vector<std::uint32_t>& counts,
                       std::uint32_t micro_batches) {
  constexpr std::uint32_t nowhere = std::numeric_limits<std::uint32_t>::max();
  const auto stages = static_cast<std::uint32_t>(counts.size());
  PlacedStages placed{StageRows(stages), std::vector<bool>(stages)};
  for (std::uint32_t s = 0; s < stages; ++s) {
    placed.rows.of(s).assign(counts[s], nowhere);
    placed.torn[s] = counts[s] > 1 && micro_batches % counts[s] != 0;
  }
  for (std::uint32_t row = 0; row < cells.rows.size(); ++row) {
    for (const CsvCell& cell : cells.rows[row]) {
      if (!is_compute(cell.kind)) continue;
      std::uint32_t& home = placed.rows.of(cell.stage)[cell.micro_batch % counts[cell.stage]];
      if (home == nowhere) home = row;
      if (home != row) placed.torn[cell.stage] = true;
    }
  }
  return placed;
}

/// Where a stage is that stands in several rows which are not replicas.
struct TornStage {
  std::map<std::uint32_t, std::size_t> ops;  ///< By row.
  std::size_t all = 0;
  std::pair<std::uint32_t, std::size_t> home{0, 0};  ///< The row with most of them, and how many.
  std::uint32_t told = 0;                            ///< Row and one: the last that was told.
};

std::map<std::uint32_t, TornStage> torn_stages(const CsvCells& cells,
                                               const std::vector<bool>& torn) {
  std::map<std::uint32_t, TornStage> stages;
  for (std::uint32_t row = 0; row < cells.rows.size(); ++row) {
    for (const CsvCell& cell : cells.rows[row]) {
      if (is_compute(cell.kind) && torn[cell.stage]) ++stages[cell.stage].ops[row];
    }
  }
  for (auto& [number, stage] : stages) {
    for (const auto& row : stage.ops) {
      stage.all += row.second;
      if (row.second > stage.home.second) stage.home = row;
    }
  }
  return stages;
}

/// Each stage that is torn, in all rows but that with most of its ops.
void tell_torn(const CsvCells& cells, const std::vector<bool>& torn, std::uint32_t micro_batches,
               Diagnostics& problems) {
  std::map<std::uint32_t, TornStage> stages = torn_stages(cells, torn);
  if (stages.empty()) return;
  for (std::uint32_t row = 0; row < cells.rows.size(); ++row) {
    for (const CsvCell& cell : cells.rows[row]) {
      if (!is_compute(cell.kind) || !torn[cell.stage]) continue;
      TornStage& stage = stages.at(cell.stage);
      if (stage.home.first == row || stage.told == row + 1) continue;
      if (problems.size() == kMostCsvProblems) return;
      stage.told = row + 1;
      problems.push_back(
          cell_error(cells, row, cell,
                     fmt::format("stage {} is in row {}, with {} of its {} ops", cell.stage,
                                 stage.home.first + 1, stage.home.second, stage.all),
                     fmt::format("{0} rows of a stage are its replicas if {0} divides the number "
                                 "of micro-batches, {1}, and those with the same remainder stand "
                                 "in one row",
                                 stage.ops.size(), micro_batches)));
    }
  }
}

/// A stage that shares its row with the next one for some micro-batches, and not for others. Errors
/// where it is so: what crosses there would be sent for a part of them.
void tell_half_shared(const CsvCells& cells, const StageRows& rows, Diagnostics& problems) {
  for (std::uint32_t row = 0; row < cells.rows.size(); ++row) {
    for (const CsvCell& cell : cells.rows[row]) {
      if (cell.kind != CellKind::forward || cell.stage == 0) continue;
      if (rows.row(cell.stage - 1, cell.micro_batch) != row) continue;
      if (rows.of(cell.stage - 1) == rows.of(cell.stage)) continue;
      if (problems.size() == kMostCsvProblems) return;
      problems.push_back(
          cell_error(cells, row, cell,
                     fmt::format("micro-batch {} of stages {} and {} is in one row, others are not",
                                 cell.micro_batch, cell.stage - 1, cell.stage),
                     "neighbouring stages share the rows of all micro-batches, or of none"));
    }
  }
}

/// The rows of each stage. Errors: a stage in several rows that are not replicas, one without ops,
/// neighbours that share a part of their rows.
Result<StageRows> rows_of_stages(const CsvCells& cells, std::uint32_t micro_batches) {
  const PlacedCell last = highest(cells, [](const CsvCell& cell) { return cell.stage; });
  const std::uint32_t stages = last.cell->stage + 1;
  const std::vector<std::uint32_t> counts = row_counts(cells, stages);
  PlacedStages placed = find_rows(cells, counts, micro_batches);
  Diagnostics problems;
  tell_torn(cells, placed.torn, micro_batches, problems);
  const auto missing = std::count(counts.begin(), counts.end(), 0);
  if (missing > 0 && problems.size() < kMostCsvProblems) {
    const auto without = std::find(counts.begin(), counts.end(), 0) - counts.begin();
    const std::string more = missing > 1 ? fmt::format(" (and {} more)", missing - 1) : "";
    problems.push_back(cell_error(cells, last.row, *last.cell,
                                  fmt::format("the stages run up to {}, but stage {}{} has no op",
                                              last.cell->stage, without, more)));
  }
  if (problems.empty()) tell_half_shared(cells, placed.rows, problems);
  if (!problems.empty()) return problems;
  return std::move(placed.rows);
}

/// Whether the ops of a row are F1..F(M) and B0..B(M-1) of this stage, both in order: gives M.
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

/// PyTorch's Schedule1F1B counts the forwards of its last rank from 1 when it writes its order
/// down; the loop that it runs counts them from 0.
std::optional<Diagnostic> shifted_last_row(const CsvCells& cells, const OpLists& lists,
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
  constexpr std::size_t most_shown = 8;
  std::string right;
  for (std::size_t i = 0; i < std::min(lists[row].size(), most_shown); ++i) {
    Op op = lists[row][i];
    if (op.kind == OpKind::forward) --op.micro_batch.value;
    right += (i == 0 ? "" : ",") + to_text(op);
  }
  if (lists[row].size() > most_shown) right += ",...";
  const auto& list = lists[row];
  const auto first_backward = std::find_if(
      list.begin(), list.end(), [](const Op& op) { return op.kind == OpKind::backward; });
  const auto position = static_cast<std::size_t>(first_backward - list.begin());
  const auto& row_cells = cells.rows[row];
  const auto cell = std::find_if(row_cells.begin(), row_cells.end(),
                                 [](const CsvCell& c) { return c.kind == CellKind::backward; });
  return Diagnostic{
      .mark = {cells.source, static_cast<int>(row) + 1, static_cast<int>(cell->column),
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

/// A number of micro-batches that the file's ops cannot nearly fill, and that would cost memory.
std::optional<Diagnostic> absurd_size(const CsvCells& cells, std::uint32_t stages) {
  const PlacedCell last = highest(cells, [](const CsvCell& cell) { return cell.micro_batch; });
  const std::uint64_t micro_batches = std::uint64_t{last.cell->micro_batch} + 1;
  const std::uint64_t needed = 2 * micro_batches * stages;
  if (needed < kFewOps || needed / 2 <= cells.ops) return std::nullopt;
  return cell_error(cells, last.row, *last.cell,
                    fmt::format("with micro-batches up to {} on every stage the schedule would "
                                "need {} ops, but the file has {}",
                                last.cell->micro_batch, needed, cells.ops));
}

std::vector<std::string> notes_of(const CsvCells& cells) {
  std::vector<std::string> notes;
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
  if (cells.communications > 0) {
    notes.push_back(
        fmt::format("communication cells: {}, checked and dropped, as they are "
                    "derived anew",
                    cells.communications));
  }
  return notes;
}

}  // namespace

Result<ScheduleFile> parse_schedule_file(std::shared_ptr<const Source> source) {
  auto cells = read_csv_cells(std::move(source));
  if (!cells) return cells.problems();
  const PlacedCell last = highest(*cells, [](const CsvCell& cell) { return cell.micro_batch; });
  const std::uint32_t micro_batches = last.cell->micro_batch + 1;
  auto rows = rows_of_stages(*cells, micro_batches);
  if (!rows) return rows.problems();
  // From here on each stage has its rows.
  OpLists lists = lists_of(*cells);
  PairStarts pairs = pairs_of(*cells);
  if (auto fault = shifted_last_row(*cells, lists, *rows)) return *std::move(fault);
  Diagnostics problems = communication_faults(*cells, *rows);
  if (auto fault = absurd_size(*cells, rows->stages());
      fault && problems.size() < kMostCsvProblems) {
    problems.push_back(*std::move(fault));
  }
  if (!problems.empty()) return problems;
  return ScheduleFile{.name = std::filesystem::path(cells->source->name).stem().string(),
                      .source = cells->source,
                      .stages = rows->stages(),
                      .micro_batches = micro_batches,
                      .rows = *rows,
                      .lists = std::move(lists),
                      .pairs = std::move(pairs),
                      .notes = notes_of(*cells)};
}

Result<ScheduleFile> read_schedule_file(const std::string& path) {
  auto source = read_file(path, kLargestScheduleFile);
  if (!source) return source.problems();
  return parse_schedule_file(*source);
}

Mark mark_of(const ScheduleFile& file, std::uint32_t device, std::size_t position) {
  const int line = static_cast<int>(device) + 1;
  for (const CsvCell& cell : read_csv_row(file.source, device)) {
    if (!is_compute(cell.kind) && cell.kind != CellKind::old_backward) continue;
    if (position-- > 0) continue;
    return {file.source, line, static_cast<int>(cell.column), static_cast<int>(cell.length)};
  }
  return {file.source, line, static_cast<int>(file.source->line(line).size()) + 1, 1};
}

}  // namespace plumbline
