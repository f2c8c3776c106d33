// Cells and tables of Markdown, and the numbers of a validation as cells.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "tools/summary.h"

namespace plumbline {

/// A table with its header in the first row. Columns named in `left` (by index) are aligned left,
/// the others right. Requires: rows of one length.
std::string markdown_table(const std::vector<std::vector<std::string>>& rows,
                           const std::vector<std::size_t>& left = {0});

/// "-0.16 %".
std::string signed_percent(double fraction);
/// "0.16 %", without a sign.
std::string unsigned_percent(double fraction);
/// "35.5 ms".
std::string time_cell(double time_s);
/// "gpipe, 4 micro-batches, 2 devices", with the network or the scenario where those distinguish
/// it.
std::string point_name(const ResultFile& file, const ResultPoint& point);

// Cells of a summary; "-" where there is no value.

/// "-1.40 % to +0.02 %".
std::string range_cell(const Spread& spread, bool any);
/// "-1.40 %: gpipe, 4 micro-batches, 2 devices".
std::string worst_cell(const Summary& summary);
/// The same, with the layers' times measured beside the run.
std::string worst_cell(const TimedAgain& again);
/// "49 exact, 23 ties".
std::string memory_cell(const Summary& summary);
/// "6 SAME, 2 CLOSE".
std::string verdict_cell(const Summary& summary);
/// "25 of 26, 2 within the noise, 1 predicted as equal".
std::string order_cell(const Ranking& ranking);

}  // namespace plumbline
