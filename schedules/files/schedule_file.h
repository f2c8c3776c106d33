// An order of ops that somebody wrote down, as PyTorch prints them or as one host launches them.
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

/// A SEND or a RECV of a row.
struct CommunicationCell {
  std::uint32_t before = 0;  ///< The entry of the row's list that it stands before.
  bool sends = false;
  Op feeds;  ///< What needs what is sent: an F, or a B (that may be an I).
};

/// `0SEND_F1`, in the present letters.
std::string to_text(const CommunicationCell& cell);

/// A schedule as a file gives it. Invariants: each stage 0..stages-1 has an op, and its ops stand
/// where `rows` says, in one row or, with replicas, in several whose number divides
/// `micro_batches`; each row has an op; each op's micro-batch is below `micro_batches`, and stages
/// x micro_batches is below 500,000 or at most the number of ops. It is not known to be complete,
/// nor to run: see check.h. A sequence has rows and lists only when place_sequence has given them.
struct ScheduleFile {
  std::string name;  ///< The file's, without its folder and ending.
  std::shared_ptr<const Source> source;
  OrderForm form = OrderForm::rows;
  std::uint32_t stages = 0;         ///< Of a host's loop, which does not say it, 0.
  std::uint32_t micro_batches = 0;  ///< The highest of the file, and one.
  StageRows rows;                   ///< From 0; row i is device i.
  OpLists lists;                    ///< The ops of each row.
  PairStarts pairs;                 ///< Those that an OVERLAP_F_B joins; empty: none does.
  /// Of each row its SEND and RECV cells, in their order; empty: the file has none.
  std::vector<std::vector<CommunicationCell>> communication;
  std::vector<Op> sequence;                         ///< Of a sequence, as one host launches it.
  std::vector<std::vector<std::uint32_t>> devices;  ///< Of each stage, where the text gives them.
  std::vector<std::string> notes;  ///< What was read otherwise than it was written.

  bool is_sequence() const { return form == OrderForm::sequence || form == OrderForm::host_loop; }
};

/// The largest schedule file that is read.
inline constexpr std::size_t kLargestScheduleFile = std::size_t{256} << 20U;

/// Reads an order in any form that order_text.h knows: rows like `0F0,0F1,0B0,0B1`, Python's lists,
/// PyTorch's grid of steps, the rows that `plumbline schedule` prints, or a sequence; as compute
/// alone or with its communication spelt out, in PyTorch's present letters (I, W, B for both) or
/// its old ones (B, W, BW for both). Idle cells are passed over, the ops of overlapped pairs stand
/// one after the other, and communication is checked. A stage in several rows has replicas, as
/// chimera's have: micro-batches with the same remainder by the number of rows stand in the same
/// one, or each row has a run of them, as DualPipe numbers its two directions; those are numbered
/// in turn here. PyTorch itself has no such files. Errors: unreadable; a cell outside the grammar;
/// a row without ops; a stage without ops; a micro-batch in the row of another replica; neighbours
/// that share rows for a part of the micro-batches; communication that does not fit the ops (see
/// communication_check.h) or stands in a sequence; and the shifted last row that PyTorch's
/// Schedule1F1B exports.
Result<ScheduleFile> read_schedule_file(const std::string& path);

/// The same for a text that is at hand.
Result<ScheduleFile> parse_schedule_file(std::shared_ptr<const Source> source);

/// Gives a sequence its rows and lists; of a host's loop each op becomes those of all stages.
/// Requires: file.is_sequence(), and rows of all its stages (of a host's loop: of any number).
/// Errors: more ops than are held.
std::optional<Diagnostic> place_sequence(ScheduleFile& file, StageRows rows);

/// The place of an op: entry `position` of lists[device]; past the list, the end of the row.
/// Requires: device < lists.size().
Mark mark_of(const ScheduleFile& file, std::uint32_t device, std::size_t position);

/// The place of communication[device][index]. Requires: it is there.
Mark mark_of_communication(const ScheduleFile& file, std::uint32_t device, std::size_t index);

}  // namespace plumbline
