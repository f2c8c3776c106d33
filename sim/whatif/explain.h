// The explanation of a run's time: its critical path, its slack, its waits, and the times to reduce
// first.
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
  std::uint32_t from = 0;  ///< Slots; for a device both are the same.
  std::uint32_t to = 0;
  bool overhead = false;             ///< Neither device nor link: time per iteration.
  bool in_group = false;             ///< For a device, its sending around its group.
  std::vector<std::uint32_t> nodes;  ///< The nodes that take time.

  Duration length() const { return end - begin; }
};

/// The slack of a stage's F, B, I and W.
struct StageRoom {
  std::uint32_t ops = 0;
  std::uint32_t critical = 0;  ///< Ops without slack: on a longest path.
  Duration min_slack{};        ///< Each op alone could take that much longer at no cost.
  Duration max_slack{};
};

/// The explanation of a prediction.
struct Explanation {
  /// The complete critical path of the run, or of the steady state of an asynchronous run.
  std::vector<PathSegment> path;
  Sensitivities sensitivities;
  std::vector<StageRoom> stages;
  std::vector<Wait> waits;
  std::vector<OtherOrder> orders;  ///< Filled if the caller asks for them: other_orders().

  SimTime path_begin() const { return path.empty() ? SimTime{} : path.front().begin; }
  Duration path_length() const {
    return path.empty() ? Duration{} : path.back().end - path.front().begin;
  }
};

Explanation explain(const Outcome& outcome);

/// The node of an op by its name, "1F3"; with several copies, the node in the first. Nothing if
/// there is no such op.
std::optional<std::uint32_t> find_op(const OpGraph& graph, const std::string& name);

}  // namespace plumbline
