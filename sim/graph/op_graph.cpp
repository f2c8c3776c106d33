// Printing activities; finding channels that share a card.
//
// SPDX-License-Identifier: MIT
#include "sim/graph/op_graph.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "schedules/order/schedule.h"

namespace plumbline {

std::string to_text(const Activity& activity) {
  const std::string stage = std::to_string(activity.stage.value);
  const std::string micro_batch = std::to_string(activity.micro_batch.value);
  switch (activity.kind) {
    case ActivityKind::forward:
    case ActivityKind::backward:
    case ActivityKind::backward_input:
    case ActivityKind::backward_weight:
      return to_text(Op{static_cast<OpKind>(activity.kind), activity.stage, activity.micro_batch});
    case ActivityKind::backward_part:
    case ActivityKind::weight_part:
    case ActivityKind::forward_part:
      return to_text({op_of(activity.kind), activity.stage, activity.micro_batch}) + " (part)";
    case ActivityKind::update:
      return stage + "U" + micro_batch;
    case ActivityKind::activation_transfer:
      return "recv " + stage + "F" + micro_batch;
    case ActivityKind::gradient_transfer:
      return "recv " + stage + "B" + micro_batch;
    case ActivityKind::all_reduce:
      return "all-reduce " + stage;
    case ActivityKind::reduce_scatter:
      return "reduce-scatter " + stage;
    case ActivityKind::all_gather:
      return "all-gather " + stage;
    case ActivityKind::collective_step:
    case ActivityKind::collective_begin:
    case ActivityKind::collective_end:
      return "collective " + stage;
    case ActivityKind::flush:
      return "flush";
    case ActivityKind::overhead:
      return "overhead";
  }
  return "";
}

std::vector<std::vector<std::uint32_t>> OpGraph::stages_by_slot() const {
  return stages_of_slots(stage_slots, slots());
}

std::vector<bool> OpGraph::shared_channels() const {
  std::map<Card, int> users;
  for (const Channel& channel : channels) {
    if (!channel.path.link.bandwidth || !channel.path.out) continue;
    ++users[*channel.path.out];
    ++users[*channel.path.in];
  }
  std::vector<bool> shared;
  for (const Channel& channel : channels) {
    const bool has_cards = channel.path.link.bandwidth && channel.path.out;
    shared.push_back(has_cards && (users[*channel.path.out] > 1 || users[*channel.path.in] > 1));
  }
  return shared;
}

bool OpGraph::rates_change() const {
  if (has_slowdowns()) return true;
  const std::vector<bool> shared = shared_channels();
  return std::find(shared.begin(), shared.end(), true) != shared.end();
}

std::vector<std::uint32_t> ops_of_parts(const OpGraph& graph) {
  std::vector<std::uint32_t> ops(graph.size());
  std::vector<std::uint32_t> op(graph.slots(), 0);  // the next op of each slot
  for (std::uint32_t node = graph.size(); node-- > 0;) {
    const bool in_part = is_part(graph.activities[node].kind);
    ops[node] = in_part ? op[graph.nodes[node].resource] : node;
    if (is_op(graph.activities[node].kind)) op[graph.nodes[node].resource] = node;
  }
  return ops;
}

std::vector<std::uint32_t> ends_of_pairs(const OpGraph& graph) {
  std::vector<std::uint32_t> ends(graph.size());
  std::iota(ends.begin(), ends.end(), 0U);
  for (const auto& [first, second] : graph.pairs) ends[first] = second;
  return ends;
}

std::vector<std::uint32_t> first_parts(const OpGraph& graph) {
  std::vector<std::uint32_t> firsts(graph.size());
  std::vector<std::uint32_t> begun(graph.slots(), graph.size());  // the cut op of each slot
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    firsts[node] = node;
    const ActivityKind kind = graph.activities[node].kind;
    if (!is_part(kind) && !is_op(kind)) continue;
    std::uint32_t& of_slot = begun[graph.nodes[node].resource];
    if (of_slot == graph.size()) of_slot = node;
    if (is_part(kind)) continue;
    firsts[node] = of_slot;
    of_slot = graph.size();
  }
  return firsts;
}

std::vector<bool> early_forwards(const OpGraph& graph) {
  std::vector<bool> is_early(graph.size(), false);
  const std::vector<std::uint32_t> firsts = first_parts(graph);
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    if (graph.activities[node].kind == ActivityKind::backward) is_early[firsts[node]] = true;
  }
  return is_early;
}

std::vector<const Join*> joins_by_node(const OpGraph& graph) {
  std::vector<const Join*> joins(graph.size(), nullptr);
  for (const Join& join : graph.joins) joins[join.node] = &join;
  return joins;
}

}  // namespace plumbline
