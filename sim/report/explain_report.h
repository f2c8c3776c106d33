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

/// The JSON of `explain --json`, all of it. Ends in a newline.
std::string to_json(const Outcome& outcome, const Explanation& explanation,
                    const std::string& version);

/// "B of stage 3", "latency of link 0-1".
std::string to_text(const Sensitivity& sensitivity);

/// "1F3 waited for 0F3 over link 0-1".
std::string to_text(const OpGraph& graph, const Wait& wait);

}  // namespace plumbline
