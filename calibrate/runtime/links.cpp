// Times that follow from the ends of real ops.
//
// SPDX-License-Identifier: MIT
#include "calibrate/runtime/links.h"

#include <algorithm>
#include <limits>

namespace plumbline {

Links::Links(const OpGraph& graph, Progress& progress, std::vector<Ledger>& ledgers)
    : graph_(graph),
      progress_(progress),
      ledgers_(ledgers),
      consumers_(graph, [this](std::uint32_t node) { return is_ours(node); }),
      carriers_(graph),
      next_(graph.size(), graph.size()),
      needs_(graph.size(), 0) {
  for (const std::uint32_t consumer : consumers_.nodes) ++needs_[consumer];
  std::vector<std::uint32_t> last(graph.resources(), graph.size());
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    if (!is_ours(node)) continue;
    if (is_blocking(node)) {
      needs_[node] += 2;  // both devices have to reach it
      continue;
    }
    std::uint32_t& before = last[graph.nodes[node].resource];
    if (before != graph.size()) {
      next_[before] = node;
      ++needs_[node];
    }
    before = node;
  }
}

void Links::restart(RealTime start_time) {
  const std::lock_guard lock(mutex_);
  start_ = advanced_to_ = start_time;
  waits_for_ = needs_;
  ready_.assign(graph_.size(), start_time);
  due_ = {};
  fair_share_.emplace(carriers_.card_rates());
  for (std::uint32_t node = 0; node < graph_.size(); ++node) {
    if (is_ours(node) && needs_[node] == 0) startable_.push_back(node);
  }
  settle();
}

void Links::made(std::uint32_t node) {
  if (consumers_.first[node] == consumers_.first[node + 1]) return;
  const std::lock_guard lock(mutex_);
  const RealTime at = progress_.end[node].load(std::memory_order_relaxed);
  if (shares_cards()) advance_locked(at);
  tell_consumers(node, std::max(at, advanced_to_));
  settle();
}

void Links::reached(std::uint32_t transfer, RealTime at) {
  const std::lock_guard lock(mutex_);
  if (shares_cards()) advance_locked(at);
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
      const auto [out, in] = carriers_.cards_of(due.node);
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
  if (cost.bytes.count > 0 && carriers_.shares_a_card(node)) {
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
  for (std::uint32_t i = consumers_.first[node]; i < consumers_.first[node + 1]; ++i)
    satisfy(consumers_.nodes[i], at);
}

}  // namespace plumbline
