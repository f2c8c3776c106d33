// The memory that one device holds in a real run: activations, buffers, versions of the weights.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "calibrate/runtime/clock.h"
#include "calibrate/runtime/run_plan.h"
#include "sim/engine/stage_memory.h"
#include "sim/graph/op_graph.h"

namespace plumbline {

/// The memory account of one device over one iteration. It follows what the device does, op by op.
/// From the simulator it takes only how much a stage reserves and releases, so the two can be
/// compared. Reservations and releases have the real time at which they happen. An op whose
/// operands are missing raises an exception that names both. Examples: a backward before its own
/// forward; a version of the weights that does not exist yet or is dropped.
class Ledger {
 public:
  Ledger(const RunPlan& plan, std::uint32_t slot);

  /// Clears the last iteration.
  void restart();

  /// The version of the weights that an op uses, or that an update makes; counts its use.
  std::uint32_t version_of(std::uint32_t node);
  /// The oldest version of those weights that this device still needs. Called after version_of.
  std::uint32_t oldest_needed(std::uint32_t node);
  /// Begin and end of an op of this device, called in this order from the thread that drives it.
  /// Both ops of a pair count from the begin of the first to the end of the second.
  void begin(std::uint32_t node, RealTime at);
  void end(std::uint32_t node, RealTime at);

  /// A transfer to this device begins; a transfer from this device has arrived. The calls may come
  /// from any thread, one at a time.
  void receives(std::uint32_t transfer, RealTime at);
  void has_sent(std::uint32_t transfer, RealTime at);

  /// The peak since the restart. At the same instant releases count before reservations.
  DeviceMemory peak() const;

 private:
  struct Change {
    RealTime at = 0;
    std::uint32_t node = 0;
    Bytes activations;
    Bytes buffers;
    std::int32_t in_flight = 0;

    bool releases() const { return activations.count < 0 || buffers.count < 0 || in_flight < 0; }
  };

  /// One stage of this device.
  struct Stage {
    std::uint32_t stage = 0;
    bool splits = false;                   ///< Whether its backward is split into I and W.
    std::vector<std::uint8_t> done;        ///< The passes done, per micro-batch; see the source.
    std::uint32_t newest = 0;              ///< The newest version of the weights.
    std::vector<std::uint32_t> uses_left;  ///< Per version: F and B that still use it here.
    std::uint32_t oldest = 0;              ///< The oldest version that is kept.
    std::uint32_t max_kept = 1;
  };

  void begin_one(std::uint32_t node, RealTime at);
  void end_one(std::uint32_t node, RealTime at);
  Stage& stage_of(std::uint32_t node);
  void require(const Stage& stage, std::uint32_t node, std::uint8_t pass) const;
  void use_version(Stage& stage, std::uint32_t node, std::uint32_t version);
  void drop_versions(Stage& stage);
  std::string op_name(std::uint32_t node) const;
  /// The op itself for an op's node; for a transfer's node, the op that consumes its tensor.
  std::string fed_op(std::uint32_t node) const;

  /// What a node's stage holds for its micro-batch.
  const StageMemory& memory_of(const Stage& stage, std::uint32_t node) const;

  const RunPlan& plan_;
  std::uint32_t slot_;
  MemoryByLength memory_;
  std::vector<Stage> stages_;
  std::map<std::uint32_t, std::uint32_t> second_of_, first_of_;  ///< For this device's pairs.
  std::vector<Change> own_;                                      ///< Written by its thread.
  std::vector<Change> posted_;                                   ///< Written by other threads.
};

}  // namespace plumbline
