// What one device holds while it really runs: activations, buffers, versions of the weights.
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

/// The books of one device over one iteration. They are kept from what the device does, op by op,
/// and know nothing of the simulator's but how much a stage reserves and releases: the two are
/// compared. Reservations and releases bear the
/// real time at which they happen. An op whose operands are not there is an exception that names
/// both: a backward before its own forward, a version of the weights that was not made yet or is
/// gone.
class Ledger {
 public:
  Ledger(const RunPlan& plan, std::uint32_t slot);

  /// Forgets the last iteration.
  void restart();

  /// The version of the weights that an op uses, or that an update makes; counts its use.
  std::uint32_t version_of(std::uint32_t node);
  /// The oldest version of those weights that this device needs from here on, after version_of.
  std::uint32_t oldest_needed(std::uint32_t node);
  /// An op of this device; calls come from the thread that drives it, begin before end. Of a pair
  /// both count from the begin of the first to the end of the second.
  void begin(std::uint32_t node, RealTime at);
  void end(std::uint32_t node, RealTime at);

  /// A transfer towards this device begins; one from this device has arrived. The calls may come
  /// from any thread, one at a time.
  void receives(std::uint32_t transfer, RealTime at);
  void has_sent(std::uint32_t transfer, RealTime at);

  /// The peak since the restart. At one instant releases count first.
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
    bool splits = false;  ///< Its backward, into I and W.
    StageMemory memory;
    std::vector<std::uint8_t> done;        ///< Of each micro-batch: the passes, see the source.
    std::uint32_t newest = 0;              ///< Version of the weights.
    std::vector<std::uint32_t> uses_left;  ///< Of each version: by this device, F and B.
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
  /// The op that a node of this device is, or whose input it brings.
  std::string fed_op(std::uint32_t node) const;

  const RunPlan& plan_;
  std::uint32_t slot_;
  std::vector<Stage> stages_;
  std::map<std::uint32_t, std::uint32_t> second_of_, first_of_;  ///< Of this device's pairs.
  std::vector<Change> own_;                                      ///< By the device's thread.
  std::vector<Change> posted_;                                   ///< By others.
};

}  // namespace plumbline
