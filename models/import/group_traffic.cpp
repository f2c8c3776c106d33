// Copies of tokens, by servers and devices.
//
// SPDX-License-Identifier: MIT
#include "models/import/group_traffic.h"

#include <cmath>

#include "models/hardware/cluster.h"

namespace plumbline {

Sent sent_to_experts(SaturatingCount exchanged, const ExpertRouting& routing,
                     const TransformerOptions& options) {
  const Bytes all = {exchanged.value()};
  if (all.count == 0) return {};
  // Of those that divide an expert, each has a part of its tokens sent to it.
  const std::int64_t devices = options.expert_parallel;
  const std::int64_t servers = options.expert_servers();
  if (options.dispatch == Dispatch::per_expert) {
    const Bytes network = share_volume(all, servers);
    return {share_volume(all, devices) - network, network};
  }
  // A token reaches a server at the device with the same place there as its sender has at home.
  const std::int64_t once = all.count / routing.per_token;
  const auto copies_to = [&](std::int64_t places, std::int64_t of) {
    const auto others = static_cast<double>(of - 1) / static_cast<double>(of);
    return Bytes{std::llround(static_cast<double>(once) * mean_places(routing, places) * others)};
  };
  return {copies_to(devices, devices / servers), copies_to(servers, servers)};
}

Sent sent_for_heads(SaturatingCount exchanged, const TransformerOptions& options) {
  const Bytes all = {exchanged.value()};
  const std::int64_t devices = options.context_parallel;
  const Bytes network = share_volume(all, devices / options.context_neighbours());
  return {share_volume(all, devices) - network, network};
}

}  // namespace plumbline
