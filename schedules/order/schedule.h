// A schedule: which device executes which ops in which order. There is no time in it.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "schedules/order/op.h"
#include "schedules/stages/partition.h"

namespace plumbline {

/// The shape of a pipeline: all that most generators take. Devices are dense slots 0, 1, ... here.
/// Where micro-batches are cut along their sequence, each slice is what an op runs and what
/// micro-batch numbers count: slice k of K of micro-batch m is m x K + k.
struct PipelineShape {
  std::vector<std::vector<std::uint32_t>> stage_slots;  ///< The slots of each stage's replicas.
  std::vector<Position> positions;
  std::uint32_t slots = 0;
  std::uint32_t micro_batches = 1;
  std::uint32_t slices =
      1;  ///< Of each micro-batch; they divide micro_batches, their number in all.

  std::uint32_t stages() const { return static_cast<std::uint32_t>(stage_slots.size()); }
  std::uint32_t replicas(const Position& position) const {
    return static_cast<std::uint32_t>(stage_slots[position.first_stage].size());
  }
  /// How many micro-batches replica `replica` of `replicas` has.
  std::uint32_t share(std::uint32_t replica, std::uint32_t replicas) const {
    return (micro_batches + replicas - 1 - replica) / replicas;
  }
  /// Where stage s runs micro-batch m: replica m mod r, forward and backward on the same one.
  std::uint32_t slot(StageId s, MicroBatchId m) const {
    const auto& replicas = stage_slots[s.value];
    return replicas.size() == 1 ? replicas[0] : replicas[m.value % replicas.size()];
  }
};

/// The shape of `partition` with this many micro-batches, or slices of them, so many to each; slot
/// i is devices_in_use(partition)[i].
PipelineShape pipeline_shape(const Partition& partition, std::uint32_t micro_batches,
                             std::uint32_t slices = 1);

/// One ordered list of ops for each slot.
using OpLists = std::vector<std::vector<Op>>;

/// A schedule that is known to run: complete, without duplicates, without deadlock (see check.h).
/// Besides each device's list it has one total order, in which a single host thread would launch
/// the ops; the lists are its projections. The order falls into waves: where a loop gives it, each
/// op is a wave; in a replay, all ops that start at one instant are.
struct Schedule {
  std::string name;
  bool asynchronous = false;
  bool host_loop = false;  ///< The order is that of a loop over the whole model.
  PipelineShape shape;
  std::vector<Op> issue_order;
  std::vector<std::uint32_t> waves;  ///< Index of each wave's first op, ascending.
  /// Of each op in the order, the other one of the pair that its device runs at the same time, or
  /// itself; empty: all run by themselves.
  std::vector<std::uint32_t> partners{};

  /// A transfer with a place of its own.
  struct Transfer {
    Op feeds;                  ///< The F, or the B (or I), that needs what it brings.
    std::uint32_t before = 0;  ///< The entry of the issue order that it stands before.

    friend bool operator==(const Transfer&, const Transfer&) = default;
  };
  /// All transfers in the order in which their two ends come to them: each device does its own one
  /// after the other. Ascending by place; empty: each stands where what it brings is made, or,
  /// blocking, needed.
  std::vector<Transfer> transfers{};

  /// The list of each slot.
  OpLists lists() const;
};

/// Position by position, each device's list in one row: `device 0 | 0F0 0F1 0B0 ...`.
/// `marked_slot`'s entry `marked_index` is pointed at by a row of carets below; long lists are cut
/// around it.
std::string list_grid(const OpLists& lists, std::uint32_t marked_slot, std::size_t marked_index);

/// The most cells of a replay's table: beyond that no person reads it.
inline constexpr std::size_t kMaxCells = 2'000'000;

/// The replay of the schedule as a table: a row a device, a column a step, every op one step long.
/// `names` are those of the slots. Errors: more than kMaxCells cells.
Result<std::string> replay_grid(const Schedule& schedule, const std::vector<std::string>& names);

/// PyTorch's CSV: one row a device, cells `<stage><op><micro-batch>`, pairs that run at the same
/// time as `(2F3;5B1)OVERLAP_F_B`, no padding.
std::string torch_csv(const Schedule& schedule);

/// The issue order as one host thread launches it: `0F0 1F0 0F1 ...`, and `F0 F1 B0 ...`, where F0
/// stands for all stages, when it is a loop over the whole model.
std::string issue_sequence(const Schedule& schedule);

}  // namespace plumbline
