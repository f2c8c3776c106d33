// Telling where devices stood. SPDX-License-Identifier: MIT
#include "calibrate/run_record.h"

#include <fmt/format.h>

#include "schedules/op_graph.h"

namespace plumbline {

std::string to_text(const OpGraph& graph, const std::vector<DeviceStand>& stands) {
  std::string text;
  for (std::uint32_t slot = 0; slot < stands.size(); ++slot) {
    const DeviceStand& stand = stands[slot];
    const auto activity = [&](std::uint32_t node) { return to_text(graph.activities[node]); };
    text += fmt::format("  device {}: ", graph.devices[slot].value);
    switch (stand.state) {
      case DeviceStand::State::done:
        text += "has nothing left to do";
        break;
      case DeviceStand::State::starts:
        text += "has not begun";
        break;
      case DeviceStand::State::runs:
        text += fmt::format("runs {}", activity(stand.node));
        break;
      case DeviceStand::State::failed:
        text += fmt::format("failed at {}", activity(stand.node));
        break;
      case DeviceStand::State::waits:
        text +=
            stand.node == *stand.waits_for
                ? fmt::format("{} waits for its other end", activity(stand.node))
                : fmt::format("{} waits for {}", activity(stand.node), activity(*stand.waits_for));
        break;
    }
    text += '\n';
  }
  return text;
}

}  // namespace plumbline
