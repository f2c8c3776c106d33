// The remaining work, and its pace.
//
// SPDX-License-Identifier: MIT
#include "sim/engine/neighbours.h"

#include <algorithm>
#include <cmath>

namespace plumbline {
namespace {

/// The last factor holds for all larger numbers.
double factor_at(const std::vector<double>& factors, std::size_t place) {
  return factors.empty() ? 1 : factors[std::min(place, factors.size() - 1)];
}

}  // namespace

Neighbours::Neighbours(const OpGraph& graph) : graph_(graph) {
  if (!graph.has_slowdowns()) return;
  machines_.resize(*std::max_element(graph.machines.begin(), graph.machines.end()) + 1);
  computes_.resize(graph.slots(), false);
}

bool Neighbours::concern(std::uint32_t node) const {
  if (machines_.empty() || graph_.cost(node).hold.count() <= 0) return false;
  return is_compute_of(node) || graph_.cost(node).beside_work != 0;
}

const std::vector<Neighbours::Change>& Neighbours::start(std::uint32_t node, Duration work,
                                                         SimTime now) {
  Machine& machine = machine_of(node);
  const Running one{node, 0, static_cast<double>(work.count()), 0, now};
  if (is_compute_of(node)) {
    machine.ops.push_back(one);
    computes_[graph_.nodes[node].resource] = true;
    set_all_paces(machine, now);
  } else {
    changes_.clear();
    machine.transfers.push_back(one);
    set_pace(machine.transfers.back(), factor_of_transfer(one, machine.ops.size()), now);
  }
  return changes_;
}

bool Neighbours::end(std::uint32_t node, std::uint32_t version, SimTime now) {
  Machine& machine = machine_of(node);
  std::vector<Running>& running = is_compute_of(node) ? machine.ops : machine.transfers;
  const auto found = std::find_if(running.begin(), running.end(),
                                  [&](const Running& one) { return one.node == node; });
  if (found == running.end() || found->version != version) return false;
  running.erase(found);
  changes_.clear();
  if (!is_compute_of(node)) return true;
  computes_[graph_.nodes[node].resource] = false;
  set_all_paces(machine, now);
  return true;
}

bool Neighbours::is_update(const Running& one) const {
  return graph_.activities[one.node].kind == ActivityKind::update;
}

double Neighbours::factor_of_op(const Running& one, std::size_t running,
                                std::size_t updates) const {
  const double factor = factor_at(graph_.slowdowns[graph_.cost(one.node).slowdown], running - 1);
  return is_update(one) ? factor * factor_at(graph_.updates_at_once, updates - 1) : factor;
}

double Neighbours::factor_of_transfer(const Running& one, std::size_t running) const {
  const std::uint32_t from = graph_.sender(one.node);
  const std::uint32_t to = graph_.receiver(one.node);
  std::size_t others = running;
  if (computes_[from]) --others;
  if (computes_[to] && graph_.machines[to] == graph_.machines[from]) --others;
  return factor_at(graph_.beside_work[graph_.cost(one.node).beside_work], others);
}

void Neighbours::set_all_paces(Machine& machine, SimTime now) {
  changes_.clear();
  const auto updates = static_cast<std::size_t>(std::count_if(
      machine.ops.begin(), machine.ops.end(), [&](const Running& one) { return is_update(one); }));
  for (Running& op : machine.ops) set_pace(op, factor_of_op(op, machine.ops.size(), updates), now);
  for (Running& transfer : machine.transfers)
    set_pace(transfer, factor_of_transfer(transfer, machine.ops.size()), now);
}

void Neighbours::set_pace(Running& one, double factor, SimTime now) {
  if (one.version > 0 && factor == one.factor) return;
  if (one.factor > 0) one.left -= static_cast<double>((now - one.since).count()) / one.factor;
  one.left = std::max(one.left, 0.0);
  one.since = now;
  one.factor = factor;
  one.version = next_version_++;
  changes_.push_back({one.node, one.version, now + Duration{std::llround(one.left * one.factor)}});
}

}  // namespace plumbline
