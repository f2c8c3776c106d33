// The rows of each stage in an order: one row, or one per replica.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/bug.h"
#include "base/diagnostic.h"
#include "schedules/files/torch_csv.h"

namespace plumbline {

/// A cell and its row.
struct PlacedCell {
  std::size_t row = 0;
  const TorchCell* cell = nullptr;
};

/// The first op with the highest `value`. Requires: there is an op.
template <class Value>
PlacedCell highest(const TorchCells& cells, Value value) {
  PlacedCell best;
  for (std::size_t row = 0; row < cells.rows.size(); ++row) {
    for (const TorchCell& cell : cells.rows[row]) {
      if (!is_compute(cell.kind)) continue;
      if (best.cell == nullptr || value(cell) > value(*best.cell)) best = {row, &cell};
    }
  }
  PLUMBLINE_CHECK(best.cell != nullptr, cells.rows.size());
  return best;
}

/// Renumbers micro-batches in turn where each row of a stage has a run of them, as DualPipe numbers
/// its two directions. Returns a note on what it did; nothing where it did nothing.
std::optional<std::string> number_in_turn(TorchCells& cells, std::uint32_t micro_batches);

/// The rows of each stage. Errors: a stage in several rows that are not replicas; a stage without
/// ops; neighbours that share only a part of their rows.
Result<StageRows> rows_of_stages(const TorchCells& cells, std::uint32_t micro_batches);

/// The error for a stage without ops below the highest stage.
std::optional<Diagnostic> check_missing_stages(const TorchCells& cells);

}  // namespace plumbline
