// The levers of each op, transfer and overhead of a graph.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/levers.h"

#include <algorithm>
#include <numeric>

namespace plumbline {

void settle(Sensitivity& sensitivity, double slope, const IterationClock& clock) {
  sensitivity.gain_s = clock.iteration_time_s(slope);
  sensitivity.derivative = sensitivity.gain_s / seconds(sensitivity.now);
}

void sort_by_gain(std::vector<Lever*>& levers) {
  std::stable_sort(levers.begin(), levers.end(), [](const Lever* a, const Lever* b) {
    return a->sensitivity.gain_s > b->sensitivity.gain_s;
  });
}

Levers::Levers(const Outcome& outcome)
    : graph_(outcome.graph),
      cluster_(outcome.setup.cluster),
      copies_(outcome.setup.copies()),
      index_(index_by_class(outcome.graph)) {
  const OpGraph& graph = graph_;
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    const ActivityKind kind = graph.activities[node].kind;
    if (is_compute(kind)) {
      add_op(node);
    } else if (is_transfer(kind) || is_collective(kind)) {
      add_transfer(node);
    } else if (kind == ActivityKind::overhead) {
      add({SensitivityKind::overhead, 0, 0}, false, index_.hold[node], graph.cost(node).hold);
    }
  }
  count_links();
  drop_only_ones();
  for (Lever& lever : levers_) {
    if (lever.sensitivity.kind < SensitivityKind::update) lever.sensitivity.now = whole_op(lever);
    lever.unit = 0;
    for (const LeverPart& part : lever.parts) lever.unit = std::gcd(lever.unit, part.weight);
  }
}

std::vector<std::size_t> Levers::of(std::uint32_t node) const {
  std::vector<std::size_t> found;
  for (const bool is_latency : {false, true}) {
    const auto& entries = is_latency ? index_.latency : index_.hold;
    const auto range = by_entry_.equal_range({is_latency, entries[node]});
    for (auto at = range.first; at != range.second; ++at) found.push_back(at->second);
  }
  return found;
}

void Levers::add_op(std::uint32_t node) {
  const Activity& activity = graph_.activities[node];
  constexpr SensitivityKind kinds[] = {
      SensitivityKind::forward,         SensitivityKind::backward, SensitivityKind::backward_input,
      SensitivityKind::backward_weight, SensitivityKind::backward, SensitivityKind::backward_weight,
      SensitivityKind::forward,         SensitivityKind::update};
  add({kinds[static_cast<std::size_t>(activity.kind)], activity.stage.value, 0}, false,
      index_.hold[node], graph_.cost(node).hold);
}

void Levers::count_links() {
  for (const auto& place : alike_) {
    for (Lever& lever : levers_) {
      const Sensitivity& sensitivity = lever.sensitivity;
      const bool is_link = sensitivity.kind == SensitivityKind::latency ||
                           sensitivity.kind == SensitivityKind::bandwidth;
      const std::pair link{sensitivity.from.value, sensitivity.to.value};
      if (is_link && !sensitivity.every && link == place.second.front())
        lever.sensitivity.links = static_cast<std::uint32_t>(place.second.size());
    }
  }
}

void Levers::drop_only_ones() {
  for (std::size_t i = 0; i < levers_.size(); ++i) {
    if (!levers_[i].sensitivity.every) continue;
    const SensitivityKind kind = levers_[i].sensitivity.kind;
    const auto alike = std::count_if(levers_.begin(), levers_.end(), [&](const Lever& other) {
      return other.sensitivity.kind == kind;
    });
    if (alike == 2) levers_[i].parts.clear();
  }
}

Duration Levers::whole_op(const Lever& lever) const {
  const auto kind = static_cast<std::size_t>(lever.sensitivity.kind);  // equals the class of cost
  Duration longest{};
  for (std::uint32_t s = 0; s < graph_.stage_slots.size(); ++s) {
    if (lever.sensitivity.every || lever.sensitivity.stage.value == s)
      longest = std::max(longest, graph_.cost_of({s}, kind).hold);
  }
  return longest;
}

void Levers::add_transfer(std::uint32_t node) {
  const std::uint32_t from = graph_.sender(node);
  const std::uint32_t to = graph_.receiver(node);
  const Cost& cost = graph_.cost(node);
  const auto own = [&](std::vector<std::uint32_t>& entries, std::vector<Duration>& table,
                       std::size_t which) {
    const auto [found, is_new] = own_entries_[which].try_emplace(
        {from, to, graph_.nodes[node].cost}, static_cast<std::uint32_t>(table.size()));
    if (is_new) table.push_back(which == 0 ? cost.hold : cost.latency);
    entries[node] = found->second;
  };
  own(index_.hold, index_.holds, 0);
  own(index_.latency, index_.latencies, 1);
  const auto [a, b] = link_for(graph_.devices[from].value, graph_.devices[to].value);
  add({SensitivityKind::latency, a, b}, true, index_.latency[node], cost.latency);
  // A blocking transfer holds its streams during the latency, too.
  add({SensitivityKind::latency, a, b}, false, index_.hold[node], cost.lead);
  add({SensitivityKind::bandwidth, a, b}, false, index_.hold[node], cost.hold - cost.lead);
}

std::pair<std::uint32_t, std::uint32_t> Levers::link_for(std::uint32_t a, std::uint32_t b) {
  if (copies_ == 1) return {a, b};
  std::size_t level = 0;  // the innermost level that both are in
  for (std::uint32_t size = cluster_.levels[0].size; a / size != b / size; ++level)
    size *= cluster_.levels[level + 1].size;
  const bool within = a % copies_ == b % copies_;  // in one copy; else in a ring between copies
  auto& links = alike_[{a / copies_, b / copies_, level, within}];
  if (std::find(links.begin(), links.end(), std::pair{a, b}) == links.end())
    links.emplace_back(a, b);
  return links.front();
}

void Levers::add(const Key& key, bool is_latency, std::uint32_t entry, Duration time) {
  if (time.count() == 0) return;
  const auto kind = std::get<0>(key);
  add_to(key, is_latency, entry, time);
  if (kind != SensitivityKind::overhead) add_to({kind, kEvery, kEvery}, is_latency, entry, time);
}

void Levers::add_to(const Key& key, bool is_latency, std::uint32_t entry, Duration time) {
  const auto [found, is_new] = by_key_.try_emplace(key, levers_.size());
  if (is_new) {
    Lever lever;
    lever.sensitivity.kind = std::get<0>(key);
    lever.sensitivity.every = std::get<1>(key) == kEvery;
    lever.sensitivity.stage = {std::get<1>(key)};
    lever.sensitivity.from = {std::get<1>(key)};
    lever.sensitivity.to = {std::get<2>(key)};
    levers_.push_back(std::move(lever));
  }
  Lever& lever = levers_[found->second];
  const auto same = [&](const LeverPart& part) {
    return part.entry == entry && part.is_latency == is_latency;
  };
  if (std::any_of(lever.parts.begin(), lever.parts.end(), same)) return;
  lever.parts.push_back({is_latency, entry, time.count()});
  by_entry_.insert({{is_latency, entry}, found->second});
  lever.sensitivity.now = std::max(lever.sensitivity.now, time);
}

}  // namespace plumbline
