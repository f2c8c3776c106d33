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

}  // namespace plumbline
