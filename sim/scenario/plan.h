// The plan section of a scenario: layers to stages, stages to devices.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/diagnostic.h"
#include "schedules/planner/planner.h"
#include "sim/scenario/layout_string.h"

namespace plumbline {

class SectionReader;

inline constexpr std::int64_t kMaxDevices = 10'000;
inline constexpr std::int64_t kMaxMicroBatches = 10'000'000;
/// The largest number of slices per micro-batch.
inline constexpr std::int64_t kMaxSlices = 1000;

enum class PartitionRule {
  even,
  blocks,  ///< Equal numbers of a transformer's blocks, plus the embedding and the head.
  balanced,
  pipedream,   ///< The planner chooses stages, replicas, devices and warm-ups.
  with_order,  ///< Balanced, then changed while that makes the order faster that is found for it.
};

/// The names of the layers of each stage.
using StageNames = std::vector<std::vector<std::string>>;

/// The plan as the user wrote it. Absent values follow the rules of the contract.
struct Plan {
  std::optional<Marked<std::int64_t>> stages;
  /// The written number, if `stages` was raised: see resolve_stage_number().
  std::optional<std::int64_t> stages_raised_from{};
  /// A rule, layers per stage in topological order, the names of each stage's layers, or a layout
  /// of Megatron-LM.
  std::variant<PartitionRule, std::vector<std::int64_t>, StageNames, LayoutString> partition =
      PartitionRule::even;
  Mark partition_mark;
  std::optional<Marked<std::vector<std::int64_t>>> replicas;
  std::optional<Marked<std::vector<std::vector<std::int64_t>>>> devices;
  bool devices_open = false;  ///< plan.devices: auto, and not decided yet.
  /// Where it is decided: the device of each place, whose number would be that of the place.
  std::vector<std::uint32_t> device_order{};
  std::optional<Marked<std::vector<std::int64_t>>> warm_up;
  Marked<std::int64_t> data_parallel{1, {}};  ///< Copies of the whole pipeline.
  bool fills_cluster = false;                 ///< As many copies as the devices allow.
  /// For PartitionRule::pipedream.
  CostModel cost_model = CostModel::calibrated;
  std::optional<bool> activation_transfers;  ///< Absent: published false, calibrated true.
  std::uint32_t candidates = 8;

  bool is_planned() const {
    const auto* rule = std::get_if<PartitionRule>(&partition);
    return rule && *rule == PartitionRule::pipedream;
  }
  /// Whether the search of the order chooses the partition, too.
  bool goes_with_order() const {
    const auto* rule = std::get_if<PartitionRule>(&partition);
    return rule && *rule == PartitionRule::with_order;
  }
  /// The number of stages of a partition that is written out.
  std::optional<std::size_t> written_stages() const;
};

/// Reads all keys of the section. If it names a `file`, which `plumbline plan -o` writes, reads the
/// keys of that file. Adds all errors to `problems`.
Plan read_plan_section(SectionReader& section, Diagnostics& problems);

}  // namespace plumbline
