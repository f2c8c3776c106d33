// The remaining work, and its pace.
//
// SPDX-License-Identifier: MIT
#include "sim/engine/neighbours.h"

#include <algorithm>
#include <cmath>

namespace plumbline {

Neighbours::Neighbours(const OpGraph& graph) : graph_(graph) {
  if (!graph.has_slowdowns()) return;
  running_.resize(*std::max_element(graph.machines.begin(), graph.machines.end()) + 1);
}

bool Neighbours::concern(std::uint32_t node) const {
  return !running_.empty() && is_compute(graph_.activities[node].kind) &&
         graph_.cost(node).hold.count() > 0;
}

const std::vector<Neighbours::Change>& Neighbours::start(std::uint32_t node, Duration work,
                                                         SimTime now) {
  std::vector<Running>& running = beside(node);
  running.push_back({node, 0, static_cast<double>(work.count()), 0, now});
  set_pace(running, now);
  return changes_;
}

bool Neighbours::end(std::uint32_t node, std::uint32_t version, SimTime now) {
  std::vector<Running>& running = beside(node);
  const auto found = std::find_if(running.begin(), running.end(),
                                  [&](const Running& one) { return one.node == node; });
  if (found == running.end() || found->version != version) return false;
  running.erase(found);
  set_pace(running, now);
  return true;
}

bool Neighbours::is_update(const Running& one) const {
  return graph_.activities[one.node].kind == ActivityKind::update;
}

double Neighbours::factor_of(const Running& one, std::size_t running, std::size_t updates) const {
  const auto of = [](const std::vector<double>& factors, std::size_t count) {
    return factors.empty() ? 1 : factors[std::min(count, factors.size()) - 1];
  };
  const double factor = of(graph_.slowdowns[graph_.cost(one.node).slowdown], running);
  return is_update(one) ? factor * of(graph_.updates_at_once, updates) : factor;
}

void Neighbours::set_pace(std::vector<Running>& running, SimTime now) {
  changes_.clear();
  const auto updates = static_cast<std::size_t>(std::count_if(
      running.begin(), running.end(), [&](const Running& one) { return is_update(one); }));
  for (Running& one : running) {
    const double factor = factor_of(one, running.size(), updates);
    if (one.version > 0 && factor == one.factor) continue;
    if (one.factor > 0) one.left -= static_cast<double>((now - one.since).count()) / one.factor;
    one.left = std::max(one.left, 0.0);
    one.since = now;
    one.factor = factor;
    one.version = next_version_++;
    changes_.push_back(
        {one.node, one.version, now + Duration{std::llround(one.left * one.factor)}});
  }
}

}  // namespace plumbline
