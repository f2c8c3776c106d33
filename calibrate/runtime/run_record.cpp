// Reading a measured iteration, and printing the states of devices.
//
// SPDX-License-Identifier: MIT
#include "calibrate/runtime/run_record.h"

#include <fmt/format.h>

#include "sim/engine/release.h"

namespace plumbline {

void count_hand_over(const OpGraph& graph, MeasuredIteration& iteration) {
  attribute_releases(graph, iteration.trace);
  iteration.hand_over = {};
  iteration.hand_overs = 0;
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    if (!is_compute(graph.activities[node].kind)) continue;
    iteration.hand_over +=
        iteration.trace.spans[node].begin - released(graph, iteration.trace, node);
    ++iteration.hand_overs;
  }
}

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
