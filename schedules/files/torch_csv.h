// The cells of an order of ops as PyTorch writes them: `<stage><op><micro-batch>` each.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "schedules/files/order_text.h"

namespace plumbline {

/// The meaning of a cell, in PyTorch's present letters.
enum class CellKind : std::uint8_t {
  forward,          ///< F
  backward,         ///< B; BW in the old letters.
  backward_input,   ///< I; B in the old letters.
  backward_weight,  ///< W
  send_forward,     ///< SEND_F: stage s sends its output to stage s+1.
  receive_forward,  ///< RECV_F: stage s receives the output of stage s-1.
  send_backward,    ///< SEND_B: stage s sends its gradient to stage s-1.
  receive_backward,
  unshard,
  reshard,
  reduce_gradients,
  old_backward,  ///< BW as read; read_torch_cells leaves none.
};

/// F, B, I, W: the ops that take device time.
constexpr bool is_compute(CellKind kind) { return kind <= CellKind::backward_weight; }
/// SEND and RECV of both directions.
constexpr bool is_transfer(CellKind kind) {
  return kind >= CellKind::send_forward && kind <= CellKind::receive_backward;
}

/// One cell, or one part of an overlapped pair, with its place in its row.
struct TorchCell {
  CellKind kind = CellKind::forward;
  std::uint32_t stage = 0;
  std::uint32_t micro_batch = 0;  ///< 0 for UNSHARD, RESHARD and REDUCE_GRAD.
  std::uint32_t number = 0;       ///< Number of the cell in its row, from 1; idle cells count.
  std::uint32_t line = 0;         ///< From 1, like the column.
  std::uint32_t column = 0;
  std::uint32_t length = 0;
  bool begins_pair = false;  ///< It and the next cell are one OVERLAP_F_B.
};

/// All cells that are not idle. Row r is device r. A sequence has one row, with all ops.
struct TorchCells {
  std::shared_ptr<const Source> source;
  OrderForm form = OrderForm::rows;
  std::vector<std::vector<TorchCell>> rows;
  /// The devices of each stage, if the text gives them; else empty.
  std::vector<std::vector<std::uint32_t>> devices;
  std::size_t ops = 0;             ///< The number of compute cells.
  std::size_t communications = 0;  ///< The number of all other cells.
  std::size_t overlapped = 0;      ///< The number of pairs in an OVERLAP_F_B.
  bool split_backward = false;     ///< There is an I, a W or a BW: old letters were possible.
  bool old_letters = false;        ///< B meant I, and BW meant B.
  std::string order_of_rows;       ///< A note where row labels are not 0, 1, ...; else "".

  bool is_sequence() const { return form == OrderForm::sequence || form == OrderForm::host_loop; }
};

/// The rows of each stage, replica by replica. With r rows, micro-batch m is in row m mod r.
class StageRows {
 public:
  explicit StageRows(std::size_t stages = 0) : rows_(stages) {}

  std::uint32_t stages() const { return static_cast<std::uint32_t>(rows_.size()); }
  /// Requires: stage < stages(), here and below.
  std::vector<std::uint32_t>& of(std::uint32_t stage) { return rows_[stage]; }
  const std::vector<std::uint32_t>& of(std::uint32_t stage) const { return rows_[stage]; }
  std::uint32_t replicas(std::uint32_t stage) const {
    return static_cast<std::uint32_t>(rows_[stage].size());
  }
  /// The row of this micro-batch.
  std::uint32_t row(std::uint32_t stage, std::uint32_t micro_batch) const {
    return rows_[stage][micro_batch % rows_[stage].size()];
  }

 private:
  std::vector<std::vector<std::uint32_t>> rows_;
};

/// The limits of reading, so that a small file with large numbers costs no memory.
inline constexpr std::uint32_t kMaxCsvStages = 10'000;
inline constexpr std::uint32_t kMaxCsvMicroBatches = 10'000'000;
inline constexpr std::size_t kMaxCsvCells = 20'000'000;
/// The most errors of one file that are reported.
inline constexpr std::size_t kMaxCsvProblems = 20;

/// Reads the cells of a text in any of its printed forms, and resolves the letters. Labelled rows
/// are sorted by their labels. Errors: no row; a row without an op; a cell outside the grammar, or
/// beyond the bounds; both sets of letters in a file; one label for two rows.
Result<TorchCells> read_torch_cells(std::shared_ptr<const Source> source);

/// `2SEND_F0`, in the letters of the file.
std::string cell_name(const TorchCells& cells, CellKind kind, std::uint32_t stage,
                      std::uint32_t micro_batch);

/// The place before a message about a cell: `row 1, cell 3`, `rank 0, step 3` or `op 3`.
std::string place_name(const TorchCells& cells, std::size_t row, std::uint32_t number);

/// An error about a cell: `row 1, cell 3: ` and the message.
Diagnostic cell_error(const TorchCells& cells, std::size_t row, const TorchCell& cell,
                      const std::string& message, std::string help = "");

}  // namespace plumbline
