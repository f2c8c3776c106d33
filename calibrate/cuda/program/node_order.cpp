// Nodes that are ready, and the places of the devices when none is.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/program/node_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <set>
#include <utility>

#include "base/bug.h"
#include "sim/graph/consumers.h"

namespace plumbline {
namespace {

class Taker {
 public:
  Taker(const OpGraph& graph, const DeviceOrders& orders, const std::vector<const Join*>& joins)
      : graph_(graph),
        orders_(orders),
        joins_(joins),
        next_(graph.slots(), 0),
        taken_(graph.size(), false),
        consumers_(graph) {
    for (std::uint32_t node = 0; node < graph.size(); ++node) look_at(node);
  }

  std::optional<RunFailure> run(const std::function<void(std::uint32_t)>& take) {
    std::uint32_t count = 0;
    for (; !ready_.empty(); ++count) {
      const std::uint32_t node = *ready_.begin();
      ready_.erase(ready_.begin());
      try {
        take(node);
      } catch (const Bug&) {  // no failure of the run
        throw;
      } catch (const std::exception& error) {
        return failed(node, error.what());
      }
      taken_[node] = true;
      for (const std::uint32_t slot :
           {graph_.nodes[node].resource, graph_.nodes[node].peer_resource}) {
        if (slot >= graph_.slots() || !is_next(slot, node)) continue;
        if (++next_[slot] < orders_[slot].size()) look_at(orders_[slot][next_[slot]]);
      }
      for (std::uint32_t i = consumers_.first[node]; i < consumers_.first[node + 1]; ++i)
        look_at(consumers_.nodes[i]);
    }
    if (count == graph_.size()) return std::nullopt;
    return stuck();
  }

 private:
  bool is_next(std::uint32_t slot, std::uint32_t node) const {
    return next_[slot] < orders_[slot].size() && orders_[slot][next_[slot]] == node;
  }
  bool holds(std::uint32_t node) const {
    const Node& n = graph_.nodes[node];
    if (n.resource < graph_.slots() && !is_next(n.resource, node)) return false;
    return n.peer_resource >= graph_.slots() || n.peer_resource == n.resource ||
           is_next(n.peer_resource, node);
  }
  std::optional<std::uint32_t> lacks(std::uint32_t node) const {
    const std::uint32_t after = graph_.nodes[node].input;
    if (after != graph_.size() && !taken_[after]) return after;
    if (joins_[node]) {
      for (const std::uint32_t one : joins_[node]->inputs) {
        if (!taken_[one]) return one;
      }
    }
    return std::nullopt;
  }
  void look_at(std::uint32_t node) {
    if (!taken_[node] && holds(node) && !lacks(node)) ready_.insert(node);
  }

  std::vector<DeviceStand> stands() const {
    std::vector<DeviceStand> all(graph_.slots());
    for (std::uint32_t slot = 0; slot < graph_.slots(); ++slot) {
      if (next_[slot] >= orders_[slot].size()) continue;  // done
      const std::uint32_t node = orders_[slot][next_[slot]];
      all[slot].state = DeviceStand::State::waits;
      all[slot].node = node;
      all[slot].waits_for = lacks(node).value_or(node);
    }
    return all;
  }

  RunFailure failed(std::uint32_t node, const char* why) const {
    RunFailure failure;
    failure.kind = RunFailure::Kind::failed;
    failure.stands = stands();
    const std::uint32_t slot = graph_.nodes[node].resource;
    failure.message = fmt::format("device {} failed at {}: {}", graph_.devices[slot].value,
                                  to_text(graph_.activities[node]), why);
    failure.stands[slot] = {DeviceStand::State::failed, node, std::nullopt};
    return failure;
  }

  RunFailure stuck() const {
    RunFailure failure;
    failure.stands = stands();
    const bool any_waits = std::any_of(
        failure.stands.begin(), failure.stands.end(),
        [](const DeviceStand& stand) { return stand.state == DeviceStand::State::waits; });
    if (any_waits) {
      failure.kind = RunFailure::Kind::deadlock;
      failure.message = "deadlock: every device waits for another, and nothing is under way";
    } else {
      const auto left = std::find(taken_.begin(), taken_.end(), false) - taken_.begin();
      failure.kind = RunFailure::Kind::incomplete;
      failure.message = fmt::format("all devices have ended, but {} was never run",
                                    to_text(graph_.activities[static_cast<std::size_t>(left)]));
    }
    return failure;
  }

  const OpGraph& graph_;
  const DeviceOrders& orders_;
  const std::vector<const Join*>& joins_;
  std::vector<std::uint32_t> next_;  ///< Each device's place in its order.
  std::vector<bool> taken_;
  Consumers consumers_;
  std::set<std::uint32_t> ready_;
};

}  // namespace

std::optional<RunFailure> take_nodes(const OpGraph& graph, const DeviceOrders& orders,
                                     const std::vector<const Join*>& joins,
                                     const std::function<void(std::uint32_t)>& take) {
  return Taker(graph, orders, joins).run(take);
}

}  // namespace plumbline
