// Slots of equal length: blocks are laid out, then pushed together.
//
// SPDX-License-Identifier: MIT
#include "schedules/generators/v_half.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/bug.h"

namespace plumbline {
namespace {

constexpr std::uint32_t kPeriod = 6;  // two F, two I, two W

/// A device's slots for the first micro-batch: F on the way down, F on the way back, I of the stage
/// on the way back, I of the stage on the way down.
using FirstSlots = std::array<std::uint32_t, 4>;
using BlockRule = FirstSlots (*)(std::uint32_t device, std::uint32_t devices);

/// The published blocks. The shift keeps repeated blocks out of each other's slots.
FirstSlots half_block(std::uint32_t device, std::uint32_t devices) {
  const std::uint32_t shift = devices % 2 == 0 ? 3 : 0;
  return {2 * device, 3 * devices - 2 - device, 3 * devices - 1 + shift + 2 * device,
          6 * devices - 2 + shift - device};
}

FirstSlots min_block(std::uint32_t device, std::uint32_t devices) {
  const std::uint32_t shift = devices % 3 == 0 ? 2 : 0;
  return {device, 2 * devices - 1 - device, 2 * devices + shift + device,
          4 * devices + shift - 1 - device};
}

/// The slots of one device. The oldest W that is due takes a slot without F or I.
class SlotRow {
 public:
  void put(std::uint32_t slot, Op op) {
    if (slot >= ops_.size()) ops_.resize(slot + 1);
    ops_[slot] = op;
  }
  const std::optional<Op>& at(std::uint32_t slot) const { return ops_[slot]; }
  std::size_t size() const { return ops_.size(); }

  /// Counts the micro-batches held, and returns the maximum. Requires: all ops have been put.
  std::uint32_t count() {
    states_.resize(ops_.size());
    State state;
    std::uint32_t max = 0;
    for (std::size_t slot = 0; slot < ops_.size(); ++slot) {
      states_[slot] = state = state.after(ops_[slot]);
      max = std::max(max, state.held);
    }
    return max;
  }

  /// Moves an op to an earlier free slot, unless a slot would then hold more than `limit`. Returns
  /// whether it moved.
  bool move(std::uint32_t from, std::uint32_t to, std::uint32_t limit) {
    std::swap(ops_[from], ops_[to]);
    std::vector<State> changed;
    State state = to == 0 ? State{} : states_[to - 1];
    for (std::size_t slot = to; slot < ops_.size(); ++slot) {
      state = state.after(ops_[slot]);
      if (state.held > limit) {
        std::swap(ops_[from], ops_[to]);
        return false;
      }
      if (slot >= from && state == states_[slot]) break;  // unchanged from here on
      changed.push_back(state);
    }
    std::copy(changed.begin(), changed.end(), states_.begin() + to);
    return true;
  }

  std::vector<Op> list() const {
    std::vector<Op> list;
    std::deque<Op> due;
    const auto weight = [&] {
      list.push_back(due.front());
      due.pop_front();
    };
    for (const std::optional<Op>& op : ops_) {
      if (!op) {
        if (!due.empty()) weight();
        continue;
      }
      list.push_back(*op);
      if (op->kind == OpKind::backward_input)
        due.push_back({OpKind::backward_weight, op->stage, op->micro_batch});
    }
    while (!due.empty()) weight();
    return list;
  }

 private:
  /// The state after a slot.
  struct State {
    std::uint32_t held = 0;  ///< Micro-batches between F and W.
    std::uint32_t due = 0;   ///< Micro-batches between I and W.

    State after(const std::optional<Op>& op) const {
      if (op) return op->kind == OpKind::forward ? State{held + 1, due} : State{held, due + 1};
      return due > 0 ? State{held - 1, due - 1} : *this;
    }
    bool operator==(const State&) const = default;
  };

  std::vector<std::optional<Op>> ops_;
  std::vector<State> states_;
};

/// The blocks while they are pushed together.
class BlockPlan {
 public:
  BlockPlan(const ChunkShape& shape, BlockRule block_of)
      : shape_(shape), rows_(shape.devices), slots_(std::size_t{2} * shape.stages()) {
    PLUMBLINE_CHECK(shape.chunks == 2, shape.chunks);
    for (std::uint32_t device = 0; device < shape.devices; ++device) {
      const std::uint32_t back = shape.stages() - 1 - device;
      const FirstSlots block = block_of(device, shape.devices);
      add(device, block[0], OpKind::forward, device);
      add(device, block[1], OpKind::forward, back);
      add(device, block[2], OpKind::backward_input, back);
      add(device, block[3], OpKind::backward_input, device);
    }
  }

  /// Pushes the ops together. The ops that an op needs are planned before it, so one pass over the
  /// slots is enough.
  void squeeze() {
    std::uint32_t max = 0;
    std::size_t length = 0;
    for (SlotRow& row : rows_) {
      max = std::max(max, row.count());
      length = std::max(length, row.size());
    }
    for (std::uint32_t slot = 0; slot < length; ++slot) {
      for (SlotRow& row : rows_) {
        if (slot < row.size() && row.at(slot)) advance(row, slot, max);
      }
    }
  }

  OpLists lists() const {
    OpLists lists;
    lists.reserve(rows_.size());
    for (const SlotRow& row : rows_) lists.push_back(row.list());
    return lists;
  }

 private:
  void add(std::uint32_t device, std::uint32_t first, OpKind kind, std::uint32_t stage) {
    auto& slots = slots_of(kind, stage);
    slots.reserve(shape_.micro_batches);
    for (std::uint32_t m = 0; m < shape_.micro_batches; ++m) {
      slots.push_back(first + kPeriod * m);
      rows_[device].put(slots.back(), {kind, {stage}, {m}});
    }
  }

  /// Moves an op to the earliest free slot behind its needs in which no more than `max` is held.
  void advance(SlotRow& row, std::uint32_t slot, std::uint32_t max) {
    const Op op = *row.at(slot);
    for (std::uint32_t to = earliest(op); to < slot; ++to) {
      if (row.at(to) || !row.move(slot, to, max)) continue;
      slots_of(op.kind, op.stage.value)[op.micro_batch.value] = to;
      return;
    }
  }

  std::uint32_t earliest(const Op& op) {
    const std::uint32_t stage = op.stage.value;
    const std::uint32_t m = op.micro_batch.value;
    std::uint32_t slot = 0;
    const auto needs = [&](OpKind kind, std::uint32_t of_stage, std::uint32_t of_micro_batch) {
      slot = std::max(slot, slots_of(kind, of_stage)[of_micro_batch] + 1);
    };
    if (m > 0) needs(op.kind, stage, m - 1);
    if (op.kind == OpKind::forward) {
      if (stage > 0) needs(OpKind::forward, stage - 1, m);
    } else {
      needs(OpKind::forward, stage, m);
      if (stage + 1 < shape_.stages()) needs(OpKind::backward_input, stage + 1, m);
    }
    return slot;
  }

  /// The slots of a stage's F or I, one per micro-batch.
  std::vector<std::uint32_t>& slots_of(OpKind kind, std::uint32_t stage) {
    return slots_[std::size_t{2} * stage + (kind == OpKind::forward ? 0 : 1)];
  }

  ChunkShape shape_;
  std::vector<SlotRow> rows_;  ///< By device.
  std::vector<std::vector<std::uint32_t>> slots_;
};

OpLists squeezed(const ChunkShape& shape, BlockRule block_of) {
  BlockPlan plan(shape, block_of);
  plan.squeeze();
  return plan.lists();
}

}  // namespace

OpLists v_half(const ChunkShape& shape) { return squeezed(shape, half_block); }

OpLists v_min(const ChunkShape& shape) { return squeezed(shape, min_block); }

}  // namespace plumbline
