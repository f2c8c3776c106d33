// The streams of a program, and the steps that its nodes wait for.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/program/program_draft.h"

#include <algorithm>

namespace plumbline {

ProgramDraft::ProgramDraft(const RunPlan& its_plan, const std::vector<StageBytes>& its_sizes,
                           const CudaProgramRules& its_rules)
    : plan(its_plan),
      graph(its_plan.graph),
      sizes(its_sizes),
      rules(its_rules),
      copies(its_plan.setup.copies()),
      joins(joins_by_node(graph)),
      sources(graph.size()),
      index(graph.stage_slots.size(), std::vector<std::uint32_t>(graph.slots(), kNone32)) {
  make_streams();
  program.step_of.assign(graph.size(), kNone32);
  program.first_step_of.assign(graph.size(), kNone32);
}

std::vector<std::uint32_t> ProgramDraft::needs_of(std::uint32_t node) const {
  std::vector<std::uint32_t> needed;
  const auto add = [&](std::uint32_t one) {
    needed.insert(needed.end(), sources[one].begin(), sources[one].end());
  };
  if (graph.nodes[node].input != graph.size()) add(graph.nodes[node].input);
  if (joins[node]) {
    for (const std::uint32_t one : joins[node]->inputs) add(one);
  }
  return needed;
}

std::uint32_t ProgramDraft::communicator_of(const std::vector<std::uint32_t>& slots) {
  auto& all = program.communicators;
  const auto place = std::find(all.begin(), all.end(), slots) - all.begin();
  if (static_cast<std::size_t>(place) == all.size()) all.push_back(slots);
  return static_cast<std::uint32_t>(place);
}

std::size_t ProgramDraft::member(std::uint32_t stage, std::uint32_t slot) const {
  const auto& slots = graph.stage_slots[stage];
  return static_cast<std::size_t>(std::find(slots.begin(), slots.end(), slot) - slots.begin());
}

void ProgramDraft::make_streams() {
  auto& streams = program.streams;
  for (std::uint32_t slot = 0; slot < graph.slots(); ++slot) streams.push_back({slot, false});
  const auto add = [&](std::uint32_t slot) {
    streams.push_back({slot, true});
    return static_cast<std::uint32_t>(streams.size() - 1);
  };
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    if (graph.blocking || !is_transfer(graph.activities[node].kind)) continue;
    const std::uint32_t channel = graph.nodes[node].resource;
    if (channels.contains(channel)) continue;
    channels[channel].out = add(graph.sender(node));
    if (rules.communicators) channels[channel].in = add(graph.receiver(node));
  }
  for (const auto& slots : graph.stage_slots) {
    if (slots.size() < 2) continue;
    for (const std::uint32_t slot : slots) {
      if (!gathering.contains(slot)) gathering[slot] = add(slot);
    }
  }
  steps.open(streams.size());
  last.assign(streams.size(), kNone32);
}

}  // namespace plumbline
