// A sweep as a table with the values of one key down and those of another across.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/document.h"
#include "sim/report/sweep_report.h"
#include "sim/whatif/row_number.h"

namespace plumbline {

/// What such a table shows.
struct SweepPivot {
  std::size_t rows = 0;              ///< The axis with a value in each row.
  std::size_t columns = 0;           ///< The axis with a value in each column.
  const RowNumber* value = nullptr;  ///< What the cells show.
};

/// Reads "ROWS,COLUMNS,VALUE". The first two are keys of axes, in full or by a last part that no
/// other axis has ("micro_batches"). The third is the name of a number as in JSON. Errors: not
/// three names; an unknown or ambiguous one; the same key twice.
Result<SweepPivot> parse_pivot(const std::string& text, const std::vector<SweepAxis>& axes);

/// A table for each combination of the other keys. A cell is empty if its point is not reported, a
/// dash if its point cannot run or lacks the number, "does not fit" if it does not fit. The reasons
/// and the remarks stand below.
Document to_table(const SweepReport& report, const SweepPivot& pivot);

/// The same tables in GitHub's Markdown.
std::string to_markdown(const SweepReport& report, const SweepPivot& pivot);

/// One table with columns of the other keys first (RFC 4180). Numbers are not rounded, and their
/// unit stands in the header. Cells of points that are not feasible are empty.
std::string to_csv(const SweepReport& report, const SweepPivot& pivot);

}  // namespace plumbline
