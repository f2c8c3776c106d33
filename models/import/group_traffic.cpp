// The ways of tokens, heads, sums of products, keys and values.
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
  // Each device that divides an expert has a part of its tokens sent to it.
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

Sent sent_by_products(SaturatingCount all_reduced, SaturatingCount gathered, std::int64_t devices,
                      const TransformerOptions& options) {
  const Bytes bytes =
      ring_volume({all_reduced.value()}, devices) + share_volume({gathered.value()}, devices);
  if (options.fits_in_server(devices)) return {bytes, {}};
  return {bytes, {(bytes.count + *options.devices_per_server - 1) / *options.devices_per_server}};
}

Sent sent_by_context(SaturatingCount keys_and_values, const TransformerOptions& options) {
  const Bytes bytes = share_volume({keys_and_values.value()}, options.context_parallel);
  if (options.fits_in_server(options.devices_per_sample())) return {bytes, {}};
  return {{}, bytes};
}

}  // namespace plumbline
