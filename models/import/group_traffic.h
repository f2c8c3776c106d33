// The bytes that devices of a group send to each other for a transformer's layers.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "base/saturating_count.h"
#include "base/units.h"
#include "models/import/transformer_options.h"

namespace plumbline {

/// The bytes that each device sends to others of its group, by the way that they take.
struct Sent {
  Bytes link;     ///< Within a server.
  Bytes network;  ///< Between servers.

  friend Sent operator+(const Sent& a, const Sent& b) {
    return {a.link + b.link, a.network + b.network};
  }
};

/// The traffic of `exchanged` bytes of tokens, on their way to experts everywhere in the group. The
/// bytes count a copy for each expert of a token.
Sent sent_to_experts(SaturatingCount exchanged, const ExpertRouting& routing,
                     const TransformerOptions& options);

/// The traffic of `exchanged` bytes that a device of those that share a sample has: an equal share
/// goes to each of them, one stays.
Sent sent_for_heads(SaturatingCount exchanged, const TransformerOptions& options);

/// The traffic of products that neighbours share: a tensor-parallel group, or those that divide an
/// expert. Where they span servers, each of them in one sends its part of what goes to the others,
/// besides.
Sent sent_by_products(SaturatingCount all_reduced, SaturatingCount gathered, std::int64_t devices,
                      const TransformerOptions& options);

/// The traffic of keys and values, on their way around the devices that share a sample: a step is
/// over when the slowest of them is.
Sent sent_by_context(SaturatingCount keys_and_values, const TransformerOptions& options);

}  // namespace plumbline
