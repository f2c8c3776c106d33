// Times that follow from the ends of real ops.
//
// SPDX-License-Identifier: MIT
#include "calibrate/runtime/links.h"

#include <algorithm>
#include <limits>
#include <map>

namespace plumbline {

Links::Links(const OpGraph& graph, Progress& progress, std::vector<Ledger>& ledgers)
    : graph_(graph),
      progress_(progress),
      ledgers_(ledgers),
      first_consumer_(graph.size() + 1, 0),
      next_(graph.size(), graph.size()),
      needs_(graph.size(), 0),
      channel_of_(graph.size(), 0),
      shared_(graph.shared_channels()) {
  shares_any_ = std::find(shared_.begin(), shared_.end(), true) != shared_.end();

  // Who waits for whom.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  std::vector<std::uint32_t> last(graph.resources(), graph.size());
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    if (!is_ours(node)) continue;
    const Node& n = graph.nodes[node];
    if (n.input != graph.size()) edges.emplace_back(n.input, node);
    if (is_blocking(node)) {
      needs_[node] += 2;  // both devices have come to it
    } else {
      if (last[n.resource] != graph.size()) {
        next_[last[n.resource]] = node;
        ++needs_[node];
      }
      last[n.resource] = node;
    }
  }
  for (const Join& join : graph.joins) {
    if (!is_ours(join.node)) continue;
    for (const std::uint32_t producer : join.inputs) edges.emplace_back(producer, join.node);
  }
  std::stable_sort(edges.begin(), edges.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  consumers_.reserve(edges.size());
  for (const auto& [producer, consumer] : edges) {
    ++first_consumer_[producer + 1];
    ++needs_[consumer];
    consumers_.push_back(consumer);
  }
  for (std::size_t i = 1; i < first_consumer_.size(); ++i)
    first_consumer_[i] += first_consumer_[i - 1];

  // What carries what.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> between;
  std::map<Card, std::uint32_t> cards;
  const auto card = [&](const Card& which, BytesPerSecond rate) {
    const auto [at, is_new] = cards.emplace(which, static_cast<std::uint32_t>(card_rates_.size()));
    if (is_new) card_rates_.push_back(rate);
    return at->second;
  };
  for (std::uint32_t c = 0; c < graph.channels.size(); ++c) {
    const Channel& channel = graph.channels[c];
    between[{channel.from_slot, channel.to_slot}] = c;
    const bool has_cards = channel.path.out && channel.path.link.bandwidth;
    cards_of_channel_.emplace_back(
        has_cards ? card(*channel.path.out, *channel.path.link.bandwidth) : 0,
        has_cards ? card(*channel.path.in, *channel.path.link.bandwidth) : 0);
  }
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    if (graph.holds_channel(node)) {
      channel_of_[node] = graph.nodes[node].resource - graph.slots();
    } else if (is_ours(node) && is_blocking(node)) {
      channel_of_[node] = between.at({graph.nodes[node].resource, graph.nodes[node].peer_resource});
    }
  }
}

void Links::restart(RealTime start_time) {
  const std::lock_guard lock(mutex_);
  start_ = advanced_to_ = start_time;
  waits_for_ = needs_;
  ready_.assign(graph_.size(), start_time);
  due_ = {};
  fair_share_.emplace(card_rates_);
  for (std::uint32_t node = 0; node < graph_.size(); ++node) {
    if (is_ours(node) && needs_[node] == 0) startable_.push_back(node);
  }
  settle();
}

void Links::made(std::uint32_t node) {
  if (first_consumer_[node] == first_consumer_[node + 1]) return;
  const std::lock_guard lock(mutex_);
  const RealTime at = progress_.end[node].load(std::memory_order_relaxed);
  if (shares_any_) advance_locked(at);
  tell_consumers(node, std::max(at, advanced_to_));
  settle();
}

void Links::reached(std::uint32_t transfer, RealTime at) {
  const std::lock_guard lock(mutex_);
  if (shares_any_) advance_locked(at);
  satisfy(transfer, std::max(at, advanced_to_));
  settle();
}

std::optional<RealTime> Links::advance(RealTime time) {
  const std::lock_guard lock(mutex_);
  advance_locked(time);
  if (due_.empty()) return std::nullopt;
  return due_.top().at;
}

void Links::drain() { advance(std::numeric_limits<RealTime>::max()); }

void Links::advance_locked(RealTime time) {
  while (!due_.empty() && due_.top().at <= time) {
    const Due due = due_.top();
    due_.pop();
    advanced_to_ = std::max(advanced_to_, due.at);
    if (due.is_start) {
      const Cost& cost = graph_.cost(due.node);
      const auto [out, in] = cards_of_channel_[channel_of_[due.node]];
      announce(fair_share_->start(due.node, cost.bytes, cost.hold - cost.lead, out, in,
                                  since_start(due.at)));
    } else if (fair_share_->end(due.node, due.version, since_start(due.at))) {
      announce(fair_share_->changes());
      release(due.node, due.at);
      settle();
    }
  }
}

void Links::announce(const std::vector<FairShare::Change>& changes) {
  for (const FairShare::Change& change : changes) {
    due_.push({start_ + change.end.time_since_epoch().count(), sequence_++, change.activity, false,
               change.version});
  }
}

void Links::satisfy(std::uint32_t node, RealTime at) {
  ready_[node] = std::max(ready_[node], at);
  if (--waits_for_[node] == 0) startable_.push_back(node);
}

void Links::settle() {
  while (!startable_.empty()) {
    const std::uint32_t node = startable_.back();
    startable_.pop_back();
    start(node);
  }
}

void Links::start(std::uint32_t node) {
  const RealTime begin = ready_[node];
  progress_.begin[node] = begin;
  const Cost& cost = graph_.cost(node);
  if (is_transfer(graph_.activities[node].kind)) {
    ledgers_[graph_.receiver(node)].receives(node, begin);
  }
  if (cost.bytes.count > 0 && shares_any_ && shared_[channel_of_[node]]) {
    due_.push({begin + cost.lead.count(), sequence_++, node, true, 0});
  } else {
    release(node, begin + cost.hold.count());
  }
}

void Links::release(std::uint32_t node, RealTime at) {
  const RealTime end = at + graph_.cost(node).latency.count();
  if (is_transfer(graph_.activities[node].kind)) ledgers_[graph_.sender(node)].has_sent(node, end);
  progress_.end[node].store(end, std::memory_order_release);
  if (next_[node] != graph_.size()) satisfy(next_[node], at);
  tell_consumers(node, end);
}

void Links::tell_consumers(std::uint32_t node, RealTime at) {
  for (std::uint32_t i = first_consumer_[node]; i < first_consumer_[node + 1]; ++i)
    satisfy(consumers_[i], at);
}

}  // namespace plumbline
