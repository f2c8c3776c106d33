// The checks of spelt-out communication: pairs, places, and nothing missing.
//
// SPDX-License-Identifier: MIT
#include "schedules/files/communication_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <string_view>

namespace plumbline {
namespace {

class CommunicationCheck {
 public:
  CommunicationCheck(const TorchCells& cells, const StageRows& rows)
      : cells_(cells), rows_(rows), last_backward_(rows.stages()) {
    for (std::uint32_t s = 0; s < rows.stages(); ++s) last_backward_[s].resize(rows.replicas(s));
    places_.reserve(cells.ops + cells.communications);
    for (std::uint32_t row = 0; row < cells.rows.size(); ++row) {
      for (std::uint32_t i = 0; i < cells.rows[row].size(); ++i) note(row, i);
    }
    std::sort(places_.begin(), places_.end());
  }

  Diagnostics faults() {
    for (std::uint32_t row = 0; row < cells_.rows.size(); ++row) {
      for (std::uint32_t i = 0; i < cells_.rows[row].size(); ++i) {
        if (faults_.size() == kMaxCsvProblems) return std::move(faults_);
        check(row, i);
      }
    }
    for (std::uint32_t s = 0; has_reductions_ && s < rows_.stages(); ++s) {
      for (std::uint32_t r = 0; r < rows_.replicas(s); ++r) {
        const std::uint32_t row = rows_.of(s)[r];
        if (find(CellKind::reduce_gradients, s, row) != nullptr) continue;
        refuse(row, cells_.rows[row][last_backward_[s][r]],
               fmt::format("stage {} has no REDUCE_GRAD, though other stages have", s));
      }
    }
    return std::move(faults_);
  }

 private:
  /// A cell in the order of kind, stage and micro-batch.
  struct Place {
    std::uint64_t key;
    std::uint32_t row;
    std::uint32_t index;

    friend auto operator<=>(const Place&, const Place&) = default;
  };

  static std::uint64_t key(CellKind kind, std::uint32_t stage, std::uint32_t micro_batch) {
    return (static_cast<std::uint64_t>(kind) << 48U) | (std::uint64_t{stage} << 24U) | micro_batch;
  }

  /// The third part of the key, besides kind and stage: the micro-batch, or for REDUCE_GRAD the
  /// row.
  static std::uint32_t third(const TorchCell& cell, std::uint32_t row) {
    return cell.kind == CellKind::reduce_gradients ? row : cell.micro_batch;
  }

  void note(std::uint32_t row, std::uint32_t i) {
    const TorchCell& cell = cells_.rows[row][i];
    places_.push_back({key(cell.kind, cell.stage, third(cell, row)), row, i});
    has_transfers_ |= is_transfer(cell.kind);
    has_reductions_ |= cell.kind == CellKind::reduce_gradients;
    if (cell.kind == CellKind::backward || cell.kind == CellKind::backward_weight) {
      last_backward_[cell.stage][cell.micro_batch % rows_.replicas(cell.stage)] = i;
    }
  }

  /// The first cell of this kind, stage and micro-batch, or nullptr.
  const Place* find(CellKind kind, std::uint32_t stage, std::uint32_t micro_batch) const {
    const std::uint64_t wanted = key(kind, stage, micro_batch);
    const auto found = std::lower_bound(places_.begin(), places_.end(), Place{wanted, 0, 0});
    return found == places_.end() || found->key != wanted ? nullptr : &*found;
  }

  /// The op that a transfer of this stage belongs to: its F, its I, or its B.
  const Place* find_op(bool forward, std::uint32_t stage, std::uint32_t micro_batch) const {
    if (forward) return find(CellKind::forward, stage, micro_batch);
    const Place* input = find(CellKind::backward_input, stage, micro_batch);
    return input != nullptr ? input : find(CellKind::backward, stage, micro_batch);
  }

  std::string op_name(bool forward, std::uint32_t stage, std::uint32_t micro_batch) const {
    const Place* op = find_op(forward, stage, micro_batch);
    const CellKind usual = forward ? CellKind::forward : CellKind::backward;
    return cell_name(cells_, op != nullptr ? cells_.rows[op->row][op->index].kind : usual, stage,
                     micro_batch);
  }

  std::string name(const TorchCell& cell) const {
    return cell_name(cells_, cell.kind, cell.stage, cell.micro_batch);
  }

  void refuse(std::uint32_t row, const TorchCell& cell, const std::string& message) {
    if (faults_.size() == kMaxCsvProblems) return;
    faults_.push_back(cell_error(cells_, row, cell, message));
  }

  void check(std::uint32_t row, std::uint32_t i) {
    const TorchCell& cell = cells_.rows[row][i];
    if (is_compute(cell.kind)) {
      if (has_transfers_) check_edge(row, cell);
      return;
    }
    if (cell.stage >= rows_.stages()) {
      return refuse(row, cell, fmt::format("{} names a stage that has no op", name(cell)));
    }
    const std::vector<std::uint32_t>& rows = rows_.of(cell.stage);
    const auto replica = std::find(rows.begin(), rows.end(), row) - rows.begin();
    const std::uint32_t right =
        is_transfer(cell.kind) ? rows_.row(cell.stage, cell.micro_batch) : rows.front();
    const bool is_here = rows.begin() + replica != rows.end();
    if (is_here && right != row && is_transfer(cell.kind)) {
      return refuse(row, cell,
                    fmt::format("{} names a micro-batch of another row: that of stage {} is in "
                                "row {}",
                                name(cell), cell.stage, right + 1));
    }
    if (!is_here) {
      return refuse(row, cell,
                    fmt::format("{} names a stage of another row: stage {} is in row {}",
                                name(cell), cell.stage, right + 1));
    }
    if (cell.kind == CellKind::unshard || cell.kind == CellKind::reshard) return;
    const Place& first = *find(cell.kind, cell.stage, third(cell, row));
    if (first.row != row || first.index != i) {
      return refuse(row, cell, fmt::format("{} stands here a second time", name(cell)));
    }
    if (is_transfer(cell.kind)) return check_transfer(row, i);
    const std::uint32_t last_backward = last_backward_[cell.stage][replica];
    if (last_backward <= i) return;
    refuse(row, cell,
           fmt::format("{} stands before {}, which adds to the gradients", name(cell),
                       name(cells_.rows[row][last_backward])));
  }

  void check_transfer(std::uint32_t row, std::uint32_t i) {
    const TorchCell& cell = cells_.rows[row][i];
    const bool forward =
        cell.kind == CellKind::send_forward || cell.kind == CellKind::receive_forward;
    const bool sends = cell.kind == CellKind::send_forward || cell.kind == CellKind::send_backward;
    const bool upwards = forward == sends;  // the peer is the next stage
    const std::string_view verb = sends ? "send to" : "receive from";
    if (upwards ? cell.stage + 1 == rows_.stages() : cell.stage == 0) {
      return refuse(row, cell,
                    fmt::format("{} has no stage to {}: {} is the {} stage", name(cell), verb,
                                cell.stage, upwards ? "last" : "first"));
    }
    const std::uint32_t peer = upwards ? cell.stage + 1 : cell.stage - 1;
    const std::uint32_t peer_row = rows_.row(peer, cell.micro_batch);
    if (peer_row == row) {
      return refuse(
          row, cell,
          fmt::format("{} has nothing to {}: stage {} is in this row too", name(cell), verb, peer));
    }
    const CellKind partner = forward
                                 ? (sends ? CellKind::receive_forward : CellKind::send_forward)
                                 : (sends ? CellKind::receive_backward : CellKind::send_backward);
    if (find(partner, peer, cell.micro_batch) == nullptr) {
      refuse(row, cell,
             fmt::format("{} has no {} in row {}", name(cell),
                         cell_name(cells_, partner, peer, cell.micro_batch), peer_row + 1));
    }
    check_order(row, i, forward, sends);
  }

  /// Checks that a SEND is behind the op that makes its data, or a RECV before the op that needs
  /// it.
  void check_order(std::uint32_t row, std::uint32_t i, bool forward, bool sends) {
    const TorchCell& cell = cells_.rows[row][i];
    const Place* op = find_op(forward, cell.stage, cell.micro_batch);
    const std::string own = op_name(forward, cell.stage, cell.micro_batch);
    const std::string_view does = sends ? "makes" : "needs";
    if (op == nullptr) {
      return refuse(row, cell,
                    fmt::format("{} stands without {}, which {} its data", name(cell), own, does));
    }
    if (sends == (op->index < i)) return;
    refuse(row, cell,
           fmt::format("{} stands {} {}, which {} its data", name(cell),
                       sends ? "before" : "behind", own, does));
  }

  /// Checks that an op which needs data of another row has a SEND and a RECV. Where only one of the
  /// two is there, that cell reports the other as missing.
  void check_edge(std::uint32_t row, const TorchCell& cell) {
    if (cell.kind == CellKind::backward_weight) return;
    const bool forward = cell.kind == CellKind::forward;
    if (forward ? cell.stage == 0 : cell.stage + 1 == rows_.stages()) return;
    const std::uint32_t peer = forward ? cell.stage - 1 : cell.stage + 1;
    const std::uint32_t peer_row = rows_.row(peer, cell.micro_batch);
    if (peer_row == row) return;
    const CellKind send = forward ? CellKind::send_forward : CellKind::send_backward;
    const CellKind receive = forward ? CellKind::receive_forward : CellKind::receive_backward;
    if (find(send, peer, cell.micro_batch) != nullptr ||
        find(receive, cell.stage, cell.micro_batch) != nullptr) {
      return;
    }
    refuse(row, cell,
           fmt::format("{} needs the data of {} in row {}, but {} and {} are missing", name(cell),
                       op_name(forward, peer, cell.micro_batch), peer_row + 1,
                       cell_name(cells_, send, peer, cell.micro_batch),
                       cell_name(cells_, receive, cell.stage, cell.micro_batch)));
  }

  const TorchCells& cells_;
  const StageRows& rows_;
  /// The index of the last B or W in its row, by stage and replica.
  std::vector<std::vector<std::uint32_t>> last_backward_;
  std::vector<Place> places_;
  bool has_transfers_ = false;
  bool has_reductions_ = false;
  Diagnostics faults_;
};

}  // namespace

Diagnostics communication_faults(const TorchCells& cells, const StageRows& rows) {
  if (cells.communications == 0) return {};
  return CommunicationCheck(cells, rows).faults();
}

}  // namespace plumbline
