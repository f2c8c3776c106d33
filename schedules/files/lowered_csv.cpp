// Goes through the issue order once and writes both ends of each transfer.
//
// SPDX-License-Identifier: MIT
#include "schedules/files/lowered_csv.h"

#include <cstdint>
#include <vector>

#include "base/bug.h"

namespace plumbline {
namespace {

/// The rows while they are written.
class Rows {
 public:
  explicit Rows(const Schedule& schedule)
      : shape_(schedule.shape), rows_(shape_.slots), left_(shape_.stages(), 0) {
    for (const auto& slots : shape_.stage_slots) PLUMBLINE_CHECK(slots.size() == 1, slots.size());
    for (const Op& op : schedule.issue_order) ++left_[op.stage.value];
    seen_.assign(shape_.stages(), false);
  }

  void add(const Op& op) {
    const std::uint32_t s = op.stage.value;
    if (!seen_[s]) cell(s, std::to_string(s) + "UNSHARD");
    seen_[s] = true;
    cell(s, to_text(op));
    const std::string micro_batch = std::to_string(op.micro_batch.value);
    if (op.kind == OpKind::forward && s + 1 < shape_.stages())
      transfer(s, s + 1, "_F" + micro_batch);
    if ((op.kind == OpKind::backward || op.kind == OpKind::backward_input) && s > 0)
      transfer(s, s - 1, "_B" + micro_batch);
    if (--left_[s] == 0) cell(s, std::to_string(s) + "REDUCE_GRAD");
  }

  std::string text() const {
    std::string all;
    for (const std::string& row : rows_) all += row + '\n';
    return all;
  }

 private:
  std::uint32_t slot(std::uint32_t stage) const { return shape_.stage_slots[stage].front(); }

  void cell(std::uint32_t stage, const std::string& cell) {
    std::string& row = rows_[slot(stage)];
    if (!row.empty()) row += ',';
    row += cell;
  }

  void transfer(std::uint32_t from, std::uint32_t to, const std::string& what) {
    if (slot(from) == slot(to)) return;
    cell(from, std::to_string(from) + "SEND" + what);
    cell(to, std::to_string(to) + "RECV" + what);
  }

  const PipelineShape& shape_;
  std::vector<std::string> rows_;
  std::vector<std::size_t> left_;  ///< Ops of each stage that are still to come.
  std::vector<bool> seen_;
};

}  // namespace

std::string lowered_csv(const Schedule& schedule) {
  Rows rows(schedule);
  for (const Op& op : schedule.issue_order) rows.add(op);
  return rows.text();
}

}  // namespace plumbline
