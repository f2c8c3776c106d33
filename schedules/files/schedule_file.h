// An order of ops in a file, as PyTorch prints it or as one host launches it.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "schedules/files/torch_csv.h"
#include "schedules/order/replay.h"
#include "schedules/order/schedule.h"

namespace plumbline {

/// A SEND or a RECV in a row.
struct CommunicationCell {
  std::uint32_t before = 0;  ///< Index of the row's next op.
  bool sends = false;
  Op feeds;  ///< The op that needs the data: an F, or a B (that may be an I).
};

/// `0SEND_F1`, in PyTorch's present letters.
std::string to_text(const CommunicationCell& cell);

/// A schedule as a file gives it. Invariants:
///  - Each stage 0..stages-1 has an op.
///  - Its ops are where `rows` says, in one row or, with replicas, in several whose number divides
///    `micro_batches`.
///  - Each row has an op, and each op's micro-batch is below `micro_batches`.
///  - stages x micro_batches is below 500,000 or at most the number of ops.
/// It may be incomplete or unable to run: see check.h. A sequence has rows and lists only after
/// place_sequence.
struct ScheduleFile {
  std::string name;  ///< The file's name, without folder and ending.
  std::shared_ptr<const Source> source;
  OrderForm form = OrderForm::rows;
  std::uint32_t stages = 0;         ///< 0 for a host's loop, which does not give it.
  std::uint32_t micro_batches = 0;  ///< The highest number in the file, plus 1.
  StageRows rows;                   ///< Numbered from 0; row i is device i.
  OpLists lists;                    ///< The ops of each row.
  PairStarts pairs;                 ///< The pairs of an OVERLAP_F_B; empty = none.
  /// The SEND and RECV cells of each row, in their order; empty = the file has none.
  std::vector<std::vector<CommunicationCell>> communication;
  std::vector<Op> sequence;                         ///< For a sequence: its ops in order.
  std::vector<std::vector<std::uint32_t>> devices;  ///< One per stage, where given.
  std::vector<std::string> notes;  ///< Facts that were read in another way than written.

  bool is_sequence() const { return form == OrderForm::sequence || form == OrderForm::host_loop; }
};

/// The largest schedule file that is read.
inline constexpr std::size_t kLargestScheduleFile = std::size_t{256} << 20U;

/// Reads an order in any form of order_text.h: rows like `0F0,0F1,0B0,0B1`, Python's lists,
/// PyTorch's grid of steps, the rows that `plumbline schedule` prints, or a sequence. It may hold
/// compute alone or also its communication, in PyTorch's present letters (I, W, B for both) or its
/// old ones (B, W, BW for both). Idle cells are skipped, the ops of overlapped pairs come one after
/// the other, and communication is checked. A stage in several rows has replicas, as in chimera.
/// Micro-batches with the same remainder by the number of rows are in the same row, or each row has
/// a run of micro-batches, as DualPipe numbers its two directions. Such runs are renumbered in turn
/// here. PyTorch itself has no such files.
/// Errors: unreadable; a cell outside the grammar; a row without ops; a stage without ops; a
/// micro-batch in the row of another replica; neighbours that share rows for a part of the
/// micro-batches; communication that does not fit the ops (see communication_check.h) or is in a
/// sequence; and the shifted last row that PyTorch's Schedule1F1B exports.
Result<ScheduleFile> read_schedule_file(const std::string& path);

/// The same for a text in memory.
Result<ScheduleFile> parse_schedule_file(std::shared_ptr<const Source> source);

/// Gives a sequence its rows and lists. In a host's loop each op becomes the ops of all stages.
/// Requires: file.is_sequence(), and rows of all its stages (for a host's loop: of any number).
/// Errors: more ops than kMaxCsvCells.
std::optional<Diagnostic> place_sequence(ScheduleFile& file, StageRows rows);

/// The place of an op: entry `position` of lists[device]; past the list, the end of the row.
/// Requires: device < lists.size().
Mark mark_of(const ScheduleFile& file, std::uint32_t device, std::size_t position);

/// The place of communication[device][index]. Requires: it exists.
Mark mark_of_communication(const ScheduleFile& file, std::uint32_t device, std::size_t index);

}  // namespace plumbline
