// A schedule: which device executes which ops in which order. There is no time in it.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/wrap.h"
#include "schedules/order/op.h"
#include "schedules/stages/partition.h"

namespace plumbline {

/// The shape of a pipeline: the input of most generators. Devices are dense slots 0, 1, ... here.
/// Where micro-batches are cut along their sequence, an op runs one slice, and micro-batch numbers
/// count slices: slice k of K of micro-batch m is m x K + k.
struct PipelineShape {
  std::vector<std::vector<std::uint32_t>> stage_slots;  ///< The slots of each stage's replicas.
  std::vector<Position> positions;
  std::uint32_t slots = 0;
  std::uint32_t micro_batches = 1;
  std::uint32_t slices = 1;  ///< Per micro-batch; micro_batches is the number of all slices.

  std::uint32_t stages() const { return static_cast<std::uint32_t>(stage_slots.size()); }
  std::uint32_t replicas(const Position& position) const {
    return static_cast<std::uint32_t>(stage_slots[position.first_stage].size());
  }
  /// The number of micro-batches of replica `replica` of `replicas`.
  std::uint32_t share(std::uint32_t replica, std::uint32_t replicas) const {
    return (micro_batches + replicas - 1 - replica) / replicas;
  }
  /// The slot of micro-batch m on stage s: replica m mod r, for forward and backward.
  std::uint32_t slot(StageId s, MicroBatchId m) const {
    const auto& replicas = stage_slots[s.value];
    return replicas.size() == 1 ? replicas[0] : replicas[m.value % replicas.size()];
  }
};

/// The stages of each of `slots` slots, ascending, from the slots of each stage.
std::vector<std::vector<std::uint32_t>> stages_of_slots(
    const std::vector<std::vector<std::uint32_t>>& stage_slots, std::uint32_t slots);

/// The shape of `partition` with this many micro-batches (or slices, `slices` to each micro-batch).
/// Slot i is devices_in_use(partition)[i].
PipelineShape pipeline_shape(const Partition& partition, std::uint32_t micro_batches,
                             std::uint32_t slices = 1);

/// One ordered list of ops for each slot.
using OpLists = std::vector<std::vector<Op>>;

/// A schedule that is known to run: complete, without duplicates, without deadlock (see check.h).
/// Besides each device's list it has one total order, in which a single host thread would launch
/// the ops; the lists are its projections. The order is divided into waves. Where a loop gives the
/// order, each op is a wave. In a replay, all ops that start at the same step are a wave.
struct Schedule {
  std::string name;
  bool asynchronous = false;
  bool host_loop = false;  ///< Whether a loop over the whole model gives the order.
  PipelineShape shape;
  std::vector<Op> issue_order;
  std::vector<std::uint32_t> waves;  ///< Index of each wave's first op, ascending.
  /// The partner of each op in the order, which its device runs at the same time, or the op itself;
  /// empty = all ops run separately.
  std::vector<std::uint32_t> partners{};

  /// A transfer with its own place in the order.
  struct Transfer {
    Op feeds;                  ///< The F, or the B (or I), that needs the data.
    std::uint32_t before = 0;  ///< Index of the issue order's entry behind it.

    friend bool operator==(const Transfer&, const Transfer&) = default;
  };
  /// All transfers, in the order in which both ends reach them; each device does its transfers one
  /// after another. Ascending by `before`. Empty = each transfer takes place where its data is
  /// made, or, if blocking, where it is needed.
  std::vector<Transfer> transfers{};

  /// The list of ops of each slot.
  OpLists lists() const;
};

/// Each device's list in one row, position by position: `device 0 | 0F0 0F1 0B0 ...`. A row of
/// carets below points at entry `marked_index` of `marked_slot`. Long lists are cut around it.
std::string list_grid(const OpLists& lists, std::uint32_t marked_slot, std::size_t marked_index);

/// The most cells of a replay's table; nobody reads a larger one.
inline constexpr std::size_t kMaxCells = 2'000'000;

/// The replay of the schedule as a table: one row per device, one column per step, every op one
/// step long. `names` are the names of the slots. On a page too narrow for all steps they are in
/// blocks, one below the other. Errors: more than kMaxCells cells.
Result<std::string> replay_grid(const Schedule& schedule, const std::vector<std::string>& names,
                                PageWidth width = std::nullopt);

/// PyTorch's CSV: one row per device, cells `<stage><op><micro-batch>`, no padding. Pairs that run
/// at the same time are `(2F3;5B1)OVERLAP_F_B`.
std::string torch_csv(const Schedule& schedule);

/// The issue order as one host thread launches it: `0F0 1F0 0F1 ...`. For a loop over the whole
/// model it is `F0 F1 B0 ...`, where F0 stands for all stages.
std::string issue_sequence(const Schedule& schedule);

}  // namespace plumbline
