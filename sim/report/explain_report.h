// An explanation for people and for programs.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "base/document.h"
#include "sim/whatif/explain.h"

namespace plumbline {

/// The tables that `explain` prints, with a closing sentence. With a device, all of its waits
/// instead of the longest ones.
Document to_table(const Outcome& outcome, const Explanation& explanation,
                  std::optional<DeviceId> device);

/// One op: its time, the reason for that time, its slack, and the activities before it. Requires:
/// `node` is an op or an update.
Document op_table(const Outcome& outcome, std::uint32_t node);

/// The error of a name that is no op of the run. `what` had that name: "--op".
Diagnostic no_such_op(const Outcome& outcome, const std::string& what, const std::string& name);

/// The JSON of `explain --json`, all of it. Ends in a newline.
std::string to_json(const Outcome& outcome, const Explanation& explanation,
                    const std::string& version);

/// Where a stretch of the critical path lies: "device 2", "link 0-1", "group of device 1",
/// "overhead".
std::string place_name(const OpGraph& graph, const PathSegment& segment);

/// "B of stage 3", "latency of link 0-1".
std::string to_text(const Sensitivity& sensitivity);

/// "1F3 waited for 0F3 over link 0-1".
std::string to_text(const OpGraph& graph, const Wait& wait);

}  // namespace plumbline
