// The carriers of an op graph's bytes: the channel of each transfer, and the network cards that
// channels share.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/graph/op_graph.h"

namespace plumbline {

/// The channels of a graph and their cards, in the form that FairShare takes. The graph must
/// outlive this object.
class Carriers {
 public:
  explicit Carriers(const OpGraph& graph);

  /// The rate of each card: the capacities for a FairShare.
  const std::vector<BytesPerSecond>& card_rates() const { return card_rates_; }
  /// Whether some channel shares a card, so that rates change during transfers.
  bool shares_any() const { return shares_any_; }
  /// Whether a node moves bytes over a card that another channel uses, too. Requires: a node that
  /// moves bytes, or one that is neither a transfer nor of a collective.
  bool shares_a_card(std::uint32_t node) const {
    const ActivityKind kind = graph_.activities[node].kind;
    return shares_any_ && (is_transfer(kind) || is_collective(kind)) && shared_[channel_of(node)];
  }
  /// The cards at the two ends of the node's channel: out, in. Requires: shares_a_card(node).
  std::pair<std::uint32_t, std::uint32_t> cards_of(std::uint32_t node) const {
    return cards_of_channel_[channel_of(node)];
  }

 private:
  /// A blocking transfer holds streams, so its channel is found by its two ends.
  std::uint32_t channel_of(std::uint32_t node) const {
    const Node& n = graph_.nodes[node];
    if (graph_.holds_channel(node)) return n.resource - graph_.slots();
    return channel_between_.at({n.resource, n.peer_resource});
  }

  const OpGraph& graph_;
  std::vector<BytesPerSecond> card_rates_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> cards_of_channel_;
  std::vector<bool> shared_;  ///< By channel: whether another one uses a card of it, too.
  bool shares_any_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> channel_between_;
};

}  // namespace plumbline
