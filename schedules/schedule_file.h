// A schedule that somebody wrote down in PyTorch's CSV: one row a device.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/diagnostic.h"
#include "schedules/csv_cells.h"
#include "schedules/replay.h"
#include "schedules/schedule.h"

namespace plumbline {

/// A schedule as a file in PyTorch's CSV gives it: one row a device (rank). Invariants: each stage
/// 0..stages-1 has an op, and its ops stand where `rows` says, in one row or, with replicas, in
/// several whose number divides `micro_batches`; each row has an op; each op's micro-batch is below
/// `micro_batches`, and stages x micro_batches is below 500,000 or at most the number of ops. It is
/// not known to be complete, nor to run: see check.h.
struct ScheduleFile {
  std::string name;  ///< The file's, without its folder and ending.
  std::shared_ptr<const Source> source;
  std::uint32_t stages = 0;
  std::uint32_t micro_batches = 0;  ///< The highest of the file, and one.
  StageRows rows;                   ///< From 0; row i is device i.
  OpLists lists;                    ///< The ops of each row.
  PairStarts pairs;                 ///< Those that an OVERLAP_F_B joins; empty: none does.
  std::vector<std::string> notes;   ///< What was read otherwise than it was written.
};

/// The largest schedule file that is read.
inline constexpr std::size_t kLargestScheduleFile = std::size_t{256} << 20U;

/// Reads a file of rows like `0F0,0F1,0B0,0B1`, as compute alone or with its communication spelt
/// out, in PyTorch's present letters (I, W, B for both) or its old ones (B, W, BW for both). Idle
/// cells are passed over, the ops of overlapped pairs stand one after the other, and communication
/// is checked, then dropped, because lowering derives it anew.
/// A stage in several rows has replicas, as chimera's have: micro-batches with the same remainder
/// by the number of rows stand in the same one. PyTorch itself has no such files.
/// Errors: unreadable; a cell outside the grammar; a row without ops; a stage without ops; a
/// micro-batch in the row of another replica; neighbours that share rows for a part of the
/// micro-batches; communication that does not fit the ops (see communication_check.h); and the
/// shifted last row that PyTorch's Schedule1F1B exports.
Result<ScheduleFile> read_schedule_file(const std::string& path);

/// The same for a text that is at hand.
Result<ScheduleFile> parse_schedule_file(std::shared_ptr<const Source> source);

/// The place of an op: entry `position` of lists[device]; past the list, the end of the row.
/// Requires: device < lists.size().
Mark mark_of(const ScheduleFile& file, std::uint32_t device, std::size_t position);

}  // namespace plumbline
