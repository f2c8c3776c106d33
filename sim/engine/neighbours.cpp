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
  devices_.resize(graph.slots());
}

bool Neighbours::concern(std::uint32_t node) const {
  if (machines_.empty() || graph_.cost(node).hold.count() <= 0) return false;
  return is_compute_of(node) || graph_.cost(node).beside_work != 0;
}

bool Neighbours::concerned_by(std::uint32_t node) const {
  if (!graph_.overlap.any() || graph_.cost(node).bytes.count == 0) return false;
  if (!graph_.holds_channel(node)) return false;  // a blocking transfer leaves no op beside it
  const bool is_ring = is_collective(graph_.activities[node].kind);
  return (is_ring ? graph_.overlap.collectives : graph_.overlap.transfers) != 1;
}

const std::vector<Neighbours::Change>& Neighbours::start(std::uint32_t node, Duration work,
                                                         SimTime now) {
  changes_.clear();
  Machine& machine = machine_of(node);
  const Running one{node, 0, static_cast<double>(work.count()), 0, now};
  if (!is_compute_of(node)) {
    machine.transfers.push_back(one);
    set_pace(machine.transfers.back(), factor_of_transfer(one, machine.slots.size()), now);
    return changes_;
  }
  const std::uint32_t slot = graph_.nodes[node].resource;
  devices_[slot].op = one;
  if (!graph_.has_neighbours()) {
    set_pace(*devices_[slot].op, factor_of_traffic(devices_[slot]), now);
    return changes_;
  }
  machine.slots.push_back(slot);
  set_all_paces(machine, now);
  return changes_;
}

bool Neighbours::end(std::uint32_t node, std::uint32_t version, SimTime now) {
  Machine& machine = machine_of(node);
  if (!is_compute_of(node)) {
    std::vector<Running>& running = machine.transfers;
    const auto found = std::find_if(running.begin(), running.end(),
                                    [&](const Running& one) { return one.node == node; });
    if (found == running.end() || found->version != version) return false;
    running.erase(found);
    changes_.clear();
    return true;
  }
  const std::uint32_t slot = graph_.nodes[node].resource;
  std::optional<Running>& op = devices_[slot].op;
  if (!op || op->node != node || op->version != version) return false;
  op.reset();
  changes_.clear();
  if (!graph_.has_neighbours()) return true;
  machine.slots.erase(std::find(machine.slots.begin(), machine.slots.end(), slot));
  set_all_paces(machine, now);
  return true;
}

const std::vector<Neighbours::Change>& Neighbours::begin_traffic(std::uint32_t node, SimTime now) {
  return change_traffic(node, /*begins=*/true, now);
}

const std::vector<Neighbours::Change>& Neighbours::end_traffic(std::uint32_t node, SimTime now) {
  return change_traffic(node, /*begins=*/false, now);
}

const std::vector<Neighbours::Change>& Neighbours::change_traffic(std::uint32_t node, bool begins,
                                                                  SimTime now) {
  changes_.clear();
  const bool is_ring = is_collective(graph_.activities[node].kind);
  const std::uint32_t from = graph_.sender(node);
  const std::uint32_t to = graph_.receiver(node);
  for (const std::uint32_t slot : {from, to}) {
    Device& device = devices_[slot];
    std::uint32_t& count = is_ring ? device.collectives : device.transfers;
    count = begins ? count + 1 : count - 1;
    if (device.op) {
      const Machine& machine = machine_of(device.op->node);
      set_pace(*device.op, factor_of_op(device, machine.slots.size(), updates_of(machine)), now);
    }
    if (from == to) break;  // it stands for copies, or for a group
  }
  return changes_;
}

bool Neighbours::is_update(const Running& one) const {
  return graph_.activities[one.node].kind == ActivityKind::update;
}

double Neighbours::factor_of_traffic(const Device& device) const {
  const double ring = device.collectives > 0 ? graph_.overlap.collectives : 1;
  const double transfer = device.transfers > 0 ? graph_.overlap.transfers : 1;
  return std::max(ring, transfer);
}

double Neighbours::factor_of_op(const Device& device, std::size_t running,
                                std::size_t updates) const {
  const double traffic = factor_of_traffic(device);
  if (!graph_.has_neighbours()) return traffic;
  const Running& one = *device.op;
  const double factor =
      traffic * factor_at(graph_.slowdowns[graph_.cost(one.node).slowdown], running - 1);
  return is_update(one) ? factor * factor_at(graph_.updates_at_once, updates - 1) : factor;
}

double Neighbours::factor_of_transfer(const Running& one, std::size_t running) const {
  const std::uint32_t from = graph_.sender(one.node);
  const std::uint32_t to = graph_.receiver(one.node);
  std::size_t others = running;
  if (devices_[from].op) --others;
  if (devices_[to].op && graph_.machines[to] == graph_.machines[from]) --others;
  return factor_at(graph_.beside_work[graph_.cost(one.node).beside_work], others);
}

std::size_t Neighbours::updates_of(const Machine& machine) const {
  return static_cast<std::size_t>(
      std::count_if(machine.slots.begin(), machine.slots.end(),
                    [&](std::uint32_t slot) { return is_update(*devices_[slot].op); }));
}

void Neighbours::set_all_paces(Machine& machine, SimTime now) {
  changes_.clear();
  const std::size_t updates = updates_of(machine);
  for (const std::uint32_t slot : machine.slots) {
    Device& device = devices_[slot];
    set_pace(*device.op, factor_of_op(device, machine.slots.size(), updates), now);
  }
  for (Running& transfer : machine.transfers)
    set_pace(transfer, factor_of_transfer(transfer, machine.slots.size()), now);
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
