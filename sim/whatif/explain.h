// Why a run takes as long as it takes: its critical path, its slack, its waits, and what to speed
// up first.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/engine/waits.h"
#include "sim/prediction/outcome.h"
#include "sim/whatif/other_orders.h"
#include "sim/whatif/sensitivity.h"

namespace plumbline {

/// A stretch of the critical path on one device, over one link, or in overhead. The stretches
/// follow each other without a gap; each lasts until the activity after it could begin.
struct PathSegment {
  SimTime begin;
  SimTime end;
  std::uint32_t from = 0;  ///< Slot; of a device both are the same.
  std::uint32_t to = 0;
  bool overhead = false;             ///< Neither: time per iteration.
  bool in_group = false;             ///< Of a device, what it sends around its group.
  std::vector<std::uint32_t> nodes;  ///< Those that take time.

  Duration length() const { return end - begin; }
};

/// How much room the F, B, I and W of a stage have.
struct StageRoom {
  std::uint32_t ops = 0;
  std::uint32_t critical = 0;  ///< Without any slack: on a longest path.
  Duration min_slack{};        ///< By so much each of them, alone, could take longer for nothing.
  Duration max_slack{};
};

/// What a prediction comes from.
struct Explanation {
  /// The critical path of the run, or of the steady state of an asynchronous one: from its begin to
  /// its end, all of it.
  std::vector<PathSegment> path;
  Sensitivities sensitivities;
  std::vector<StageRoom> stages;
  std::vector<Wait> waits;
  std::vector<OtherOrder> orders;  ///< Where they were asked for: other_orders().

  SimTime path_begin() const { return path.empty() ? SimTime{} : path.front().begin; }
  Duration path_length() const {
    return path.empty() ? Duration{} : path.back().end - path.front().begin;
  }
};

Explanation explain(const Outcome& outcome);

/// The node of an op by its name, "1F3"; of copies the first one's. Nothing where there is none.
std::optional<std::uint32_t> find_op(const OpGraph& graph, const std::string& name);

}  // namespace plumbline
