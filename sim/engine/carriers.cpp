// Cards are numbered in the order in which channels name them.
//
// SPDX-License-Identifier: MIT
#include "sim/engine/carriers.h"

#include <algorithm>
#include <cmath>

namespace plumbline {
namespace {

BytesPerSecond slower(BytesPerSecond rate, double factor) {
  return {std::max<std::int64_t>(1, std::llround(static_cast<double>(rate.count) / factor))};
}

}  // namespace

Carriers::Carriers(const OpGraph& graph)
    : graph_(graph),
      shared_(graph.shared_channels()),
      shares_any_(std::find(shared_.begin(), shared_.end(), true) != shared_.end()) {
  std::map<Card, std::uint32_t> index;
  const auto capacity = [&](const Card& card, BytesPerSecond rate) {
    const auto [at, is_new] = index.emplace(card, static_cast<std::uint32_t>(card_rates_.size()));
    if (is_new) {
      const auto slow = graph.slow_cards.find(card);
      if (slow != graph.slow_cards.end()) rate = slower(rate, slow->second);
      card_rates_.push_back(rate);
    }
    return at->second;
  };
  for (std::uint32_t c = 0; c < graph.channels.size(); ++c) {
    const Channel& channel = graph.channels[c];
    channel_between_[{channel.from_slot, channel.to_slot}] = c;
    const bool has_cards = channel.path.out && channel.path.link.bandwidth;
    cards_of_channel_.emplace_back(
        has_cards ? capacity(*channel.path.out, *channel.path.link.bandwidth) : 0,
        has_cards ? capacity(*channel.path.in, *channel.path.link.bandwidth) : 0);
  }
}

}  // namespace plumbline
