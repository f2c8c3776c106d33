// Rows are counted stage by stage, and compared with the micro-batches in them.
//
// SPDX-License-Identifier: MIT
#include "schedules/files/stage_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

namespace plumbline {
namespace {

/// The number of rows of each stage; 0 for a stage without ops.
std::vector<std::uint32_t> row_counts(const TorchCells& cells, std::uint32_t stages) {
  constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();
  std::vector<std::uint32_t> counts(stages, 0);
  std::vector<std::size_t> seen(stages, nowhere);
  for (std::size_t row = 0; row < cells.rows.size(); ++row) {
    for (const TorchCell& cell : cells.rows[row]) {
      if (!is_compute(cell.kind) || seen[cell.stage] == row) continue;
      seen[cell.stage] = row;
      ++counts[cell.stage];
    }
  }
  return counts;
}

/// The rows of stages, and the stages in several rows that are not replicas.
struct PlacedStages {
  StageRows rows;
  std::vector<bool> torn;
};

/// Finds the rows: the row of each replica is the row of its first micro-batch.
PlacedStages find_rows(const TorchCells& cells, const std::vector<std::uint32_t>& counts,
                       std::uint32_t micro_batches) {
  constexpr std::uint32_t nowhere = std::numeric_limits<std::uint32_t>::max();
  const auto stages = static_cast<std::uint32_t>(counts.size());
  PlacedStages placed{StageRows(stages), std::vector<bool>(stages)};
  for (std::uint32_t s = 0; s < stages; ++s) {
    placed.rows.of(s).assign(counts[s], nowhere);
    placed.torn[s] = counts[s] > 1 && micro_batches % counts[s] != 0;
  }
  for (std::uint32_t row = 0; row < cells.rows.size(); ++row) {
    for (const TorchCell& cell : cells.rows[row]) {
      if (!is_compute(cell.kind)) continue;
      std::uint32_t& home = placed.rows.of(cell.stage)[cell.micro_batch % counts[cell.stage]];
      if (home == nowhere) home = row;
      if (home != row) placed.torn[cell.stage] = true;
    }
  }
  return placed;
}

/// The ops of a stage in several rows that are not replicas.
struct TornStage {
  std::map<std::uint32_t, std::size_t> ops;  ///< By row.
  std::size_t all = 0;
  std::pair<std::uint32_t, std::size_t> home{0, 0};  ///< The row with most ops, and their number.
  std::uint32_t told = 0;                            ///< The last row that was reported, plus 1.
};

std::map<std::uint32_t, TornStage> torn_stages(const TorchCells& cells,
                                               const std::vector<bool>& torn) {
  std::map<std::uint32_t, TornStage> stages;
  for (std::uint32_t row = 0; row < cells.rows.size(); ++row) {
    for (const TorchCell& cell : cells.rows[row]) {
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

/// Reports each torn stage, in all rows except the row with most of its ops.
void tell_torn(const TorchCells& cells, const std::vector<bool>& torn, std::uint32_t micro_batches,
               Diagnostics& problems) {
  std::map<std::uint32_t, TornStage> stages = torn_stages(cells, torn);
  if (stages.empty()) return;
  for (std::uint32_t row = 0; row < cells.rows.size(); ++row) {
    for (const TorchCell& cell : cells.rows[row]) {
      if (!is_compute(cell.kind) || !torn[cell.stage]) continue;
      TornStage& stage = stages.at(cell.stage);
      if (stage.home.first == row || stage.told == row + 1) continue;
      if (problems.size() == kMaxCsvProblems) return;
      stage.told = row + 1;
      problems.push_back(
          cell_error(cells, row, cell,
                     fmt::format("stage {} is in row {}, with {} of its {} ops", cell.stage,
                                 stage.home.first + 1, stage.home.second, stage.all),
                     fmt::format("{0} rows of a stage are its replicas if {0} divides the number "
                                 "of micro-batches, {1}, and those with the same remainder, or a "
                                 "run of them, stand in one row",
                                 stage.ops.size(), micro_batches)));
    }
  }
}

/// Reports each stage that shares its row with the next stage for some micro-batches only. The data
/// between them would be sent for a part of the micro-batches.
void tell_half_shared(const TorchCells& cells, const StageRows& rows, Diagnostics& problems) {
  for (std::uint32_t row = 0; row < cells.rows.size(); ++row) {
    for (const TorchCell& cell : cells.rows[row]) {
      if (cell.kind != CellKind::forward || cell.stage == 0) continue;
      if (rows.row(cell.stage - 1, cell.micro_batch) != row) continue;
      if (rows.of(cell.stage - 1) == rows.of(cell.stage)) continue;
      if (problems.size() == kMaxCsvProblems) return;
      problems.push_back(
          cell_error(cells, row, cell,
                     fmt::format("micro-batch {} of stages {} and {} is in one row, others are not",
                                 cell.micro_batch, cell.stage - 1, cell.stage),
                     "neighbouring stages share the rows of all micro-batches, or of none"));
    }
  }
}

/// The error for a stage without ops, below the highest stage, which `last` names.
std::optional<Diagnostic> missing_stages(const TorchCells& cells, const PlacedCell& last,
                                         const std::vector<std::uint32_t>& counts) {
  const auto missing = std::count(counts.begin(), counts.end(), 0);
  if (missing == 0) return std::nullopt;
  const auto without = std::find(counts.begin(), counts.end(), 0) - counts.begin();
  const std::string more = missing > 1 ? fmt::format(" (and {} more)", missing - 1) : "";
  return cell_error(cells, last.row, *last.cell,
                    fmt::format("the stages run up to {}, but stage {}{} has no op",
                                last.cell->stage, without, more));
}

/// The number r of rows per stage, if each row has a run of the micro-batches, all equally long: 0
/// to m/r - 1 in one row, and so on. Nothing otherwise.
std::optional<std::uint32_t> rows_with_runs(const TorchCells& cells, std::uint32_t micro_batches) {
  const PlacedCell last = highest(cells, [](const TorchCell& cell) { return cell.stage; });
  const std::vector<std::uint32_t> counts = row_counts(cells, last.cell->stage + 1);
  const std::uint32_t r = *std::max_element(counts.begin(), counts.end());
  if (r < 2 || micro_batches % r != 0 || micro_batches == r) return std::nullopt;
  if (std::any_of(counts.begin(), counts.end(), [&](std::uint32_t count) { return count != r; }))
    return std::nullopt;
  constexpr std::uint32_t nowhere = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> home(std::size_t{r} * counts.size(), nowhere);
  for (std::uint32_t row = 0; row < cells.rows.size(); ++row) {
    for (const TorchCell& cell : cells.rows[row]) {
      if (!is_compute(cell.kind)) continue;
      std::uint32_t& of_run =
          home[std::size_t{cell.stage} * r + cell.micro_batch / (micro_batches / r)];
      if (of_run == nowhere) of_run = row;
      if (of_run != row) return std::nullopt;
    }
  }
  return r;
}

}  // namespace

std::optional<std::string> number_in_turn(TorchCells& cells, std::uint32_t micro_batches) {
  const auto rows = rows_with_runs(cells, micro_batches);
  if (!rows) return std::nullopt;
  const std::uint32_t each = micro_batches / *rows;
  for (auto& row : cells.rows) {
    for (TorchCell& cell : row) {
      if (is_compute(cell.kind) || is_transfer(cell.kind))
        cell.micro_batch = cell.micro_batch % each * *rows + cell.micro_batch / each;
    }
  }
  return fmt::format(
      "micro-batches: each row of a stage has a run of {}, as DualPipe numbers its two "
      "directions; here they are numbered in turn, {} as 0, {} as 1, and so on",
      each, 0, each);
}

Result<StageRows> rows_of_stages(const TorchCells& cells, std::uint32_t micro_batches) {
  const PlacedCell last = highest(cells, [](const TorchCell& cell) { return cell.stage; });
  const std::uint32_t stages = last.cell->stage + 1;
  const std::vector<std::uint32_t> counts = row_counts(cells, stages);
  PlacedStages placed = find_rows(cells, counts, micro_batches);
  Diagnostics problems;
  tell_torn(cells, placed.torn, micro_batches, problems);
  if (auto fault = missing_stages(cells, last, counts);
      fault && problems.size() < kMaxCsvProblems) {
    problems.push_back(*std::move(fault));
  }
  if (problems.empty()) tell_half_shared(cells, placed.rows, problems);
  if (!problems.empty()) return problems;
  return std::move(placed.rows);
}

std::optional<Diagnostic> check_missing_stages(const TorchCells& cells) {
  const PlacedCell last = highest(cells, [](const TorchCell& cell) { return cell.stage; });
  const std::vector<std::uint32_t> counts = row_counts(cells, last.cell->stage + 1);
  return missing_stages(cells, last, counts);
}

}  // namespace plumbline
