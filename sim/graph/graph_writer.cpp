// Writing nodes: each kind with its resource and its class of cost.
//
// SPDX-License-Identifier: MIT
#include "sim/graph/graph_writer.h"

namespace plumbline {

GraphWriter::GraphWriter(const PipelineShape& shape, const StageCosts& costs,
                         const std::vector<DeviceId>& devices, const Cluster& cluster,
                         const RunRules& options, bool sends_at_once)
    : shape_(shape),
      options_(options),
      sends_at_once_(sends_at_once),
      wiring_(shape, costs, devices, cluster, options, graph_) {
  graph_.blocking = options.blocking;
  graph_.flushes = options.flushes;
  graph_.micro_batches = shape.micro_batches * options.mini_batches;
}

void GraphWriter::reserve(std::size_t nodes) {
  graph_.nodes.reserve(nodes);
  graph_.activities.reserve(nodes);
}

void GraphWriter::begin_mini_batch(std::uint32_t first_micro_batch) {
  first_micro_batch_ = first_micro_batch;
  produced_.assign(
      std::size_t{2} * shape_.stages() * shape_.micro_batches * options_.written_copies(), kNone);
}

std::uint32_t GraphWriter::add(ActivityKind kind, StageId stage, std::uint32_t micro_batch,
                               std::uint32_t cost, std::uint32_t resource, std::uint32_t second,
                               std::uint32_t after) {
  graph_.nodes.push_back({cost, resource, second, after});
  graph_.activities.push_back({kind, stage, {first_micro_batch_ + micro_batch}});
  return graph_.size() - 1;
}

std::optional<GraphWriter::DataEdge> GraphWriter::source_of(const Op& op) const {
  const std::uint32_t s = op.stage.value;
  if (op.kind == OpKind::forward) {
    if (s == 0 || !wiring_.crosses(s - 1)) return std::nullopt;
    return DataEdge{s - 1, Wiring::up, s - 1};
  }
  if (op.kind == OpKind::backward_weight || s + 1 == shape_.stages() || !wiring_.crosses(s))
    return std::nullopt;
  return DataEdge{s, Wiring::down, s + 1};
}

std::size_t GraphWriter::place(const DataEdge& edge, std::uint32_t micro_batch,
                               std::uint32_t copy) const {
  const std::size_t of_stage = std::size_t{edge.direction} * shape_.stages() + edge.producer;
  return (of_stage * shape_.micro_batches + micro_batch) * options_.written_copies() + copy;
}

bool GraphWriter::has_input(const Op& op, std::uint32_t copy) const {
  const auto source = source_of(op);
  return !source || produced_[place(*source, op.micro_batch.value, copy)] != kNone;
}

std::uint32_t GraphWriter::input_of(const Op& op, std::uint32_t copy) const {
  const auto source = source_of(op);
  return source ? produced_[place(*source, op.micro_batch.value, copy)] : kNone;
}

std::uint32_t GraphWriter::add_transfer(const DataEdge& edge, StageId consumer,
                                        std::uint32_t micro_batch, std::uint32_t copy,
                                        std::uint32_t after) {
  const Wiring::Route& way = wiring_.route(edge.boundary, edge.direction, micro_batch, copy);
  return add(edge.direction == Wiring::up ? ActivityKind::activation_transfer
                                          : ActivityKind::gradient_transfer,
             consumer, micro_batch, way.cost, way.first, way.second, after);
}

std::uint32_t GraphWriter::add_transfer_to(const Op& op, std::uint32_t copy) {
  const auto source = source_of(op);
  if (!source) return kNone;
  std::uint32_t& data = produced_[place(*source, op.micro_batch.value, copy)];
  data = add_transfer(*source, op.stage, op.micro_batch.value, copy, data);
  return data;
}

std::uint32_t GraphWriter::add_op(const Op& op, std::uint32_t copy, std::uint32_t after) {
  const std::uint32_t slot = wiring_.slot(op.stage, op.micro_batch.value, copy);
  const auto kind = static_cast<std::size_t>(op.kind);
  const std::uint32_t m = op.micro_batch.value;
  const bool early = recomputes_early(op);
  if (early) add_recomputed_forward(op, copy);
  const std::uint32_t cost = early ? wiring_.classes().of_rest_of_backward(op.stage, m, copy)
                                   : wiring_.classes().of(op.stage, kind, m, copy);
  const std::uint32_t node =
      add(static_cast<ActivityKind>(op.kind), op.stage, m, cost, slot, slot, after);
  send_result(op, copy, node);
  return node;
}

bool GraphWriter::recomputes_early(const Op& op) const {
  return options_.recompute_early && op.kind == OpKind::backward;
}

/// The recomputed F is written as the first part of its B, and waits for nothing but its device: it
/// is never a device's first op.
void GraphWriter::add_recomputed_forward(const Op& op, std::uint32_t copy) {
  const std::uint32_t slot = wiring_.slot(op.stage, op.micro_batch.value, copy);
  add(ActivityKind::backward_part, op.stage, op.micro_batch.value,
      wiring_.classes().of_recomputed_forward(op.stage, op.micro_batch.value, copy), slot, slot,
      kNone);
}

std::uint32_t GraphWriter::add_paired(const Op& first, const Op& second, bool is_second,
                                      std::uint32_t copy, std::uint32_t after) {
  const Op& op = is_second ? second : first;
  const std::uint32_t slot = wiring_.slot(op.stage, op.micro_batch.value, copy);
  const auto [one, other] = wiring_.pair_classes(first, second);
  return add(static_cast<ActivityKind>(op.kind), op.stage, op.micro_batch.value,
             is_second ? other : one, slot, slot, after);
}

void GraphWriter::end_pair(const Op& first, const Op& second, std::uint32_t copy,
                           std::uint32_t first_node, std::uint32_t second_node) {
  graph_.pairs.emplace_back(first_node, second_node);
  send_result(first, copy, second_node);
  send_result(second, copy, second_node);
}

std::uint32_t GraphWriter::add_part(const Op& op, std::uint32_t copy, std::size_t part,
                                    std::size_t parts, std::uint32_t after) {
  const std::uint32_t slot = wiring_.slot(op.stage, op.micro_batch.value, copy);
  const auto whole = static_cast<ActivityKind>(op.kind);
  const bool is_last = part + 1 == parts;
  if (part == 0 && recomputes_early(op)) add_recomputed_forward(op, copy);
  const std::uint32_t node = add(is_last ? whole : part_of(whole), op.stage, op.micro_batch.value,
                                 wiring_.classes().of_part(op, part, copy), slot, slot, after);
  if (is_last) send_result(op, copy, node);
  return node;
}

void GraphWriter::add_waits(std::uint32_t node, const std::vector<std::uint32_t>& producers) {
  std::vector<std::uint32_t> more;
  for (const std::uint32_t producer : producers) {
    if (producer == kNone) continue;
    if (graph_.nodes[node].input == kNone) {
      graph_.nodes[node].input = producer;
    } else {
      more.push_back(producer);
    }
  }
  if (!more.empty()) graph_.joins.push_back({node, std::move(more)});
}

void GraphWriter::send_result(const Op& op, std::uint32_t copy, std::uint32_t node) {
  const std::uint32_t s = op.stage.value;
  const std::uint32_t m = op.micro_batch.value;
  std::optional<DataEdge> edge;
  StageId consumer;
  if (op.kind == OpKind::forward && wiring_.crosses(s)) {
    edge = {s, Wiring::up, s};
    consumer = {s + 1};
  } else if ((op.kind == OpKind::backward || op.kind == OpKind::backward_input) && s > 0 &&
             wiring_.crosses(s - 1)) {
    edge = {s - 1, Wiring::down, s};
    consumer = {s - 1};
  }
  if (!edge) return;
  produced_[place(*edge, m, copy)] =
      sends_at_once_ ? add_transfer(*edge, consumer, m, copy, node) : node;
}

std::uint32_t GraphWriter::add_update(StageId stage, std::uint32_t micro_batch, std::uint32_t slot,
                                      std::uint32_t after) {
  return add(ActivityKind::update, stage, micro_batch,
             OpGraph::class_of(stage, OpGraph::kUpdateClass), slot, slot, after);
}

std::uint32_t GraphWriter::add_moment(ActivityKind kind, StageId stage, std::uint32_t micro_batch,
                                      std::uint32_t resource, std::vector<std::uint32_t> ready) {
  const std::uint32_t node =
      add(kind, stage, micro_batch, wiring_.classes().moment(), resource, resource, kNone);
  graph_.joins.push_back({node, std::move(ready)});
  return node;
}

GraphWriter::CollectiveEnds GraphWriter::add_collective(const Wiring::Collective& collective,
                                                        StageId stage, std::uint32_t micro_batch,
                                                        std::vector<std::uint32_t> ready) {
  CollectiveEnds ends;
  std::uint32_t moment = add_moment(ActivityKind::collective_begin, stage, micro_batch,
                                    collective.begin, std::move(ready));
  for (const Wiring::Collective::Phase& phase : collective.phases) {
    std::vector<std::uint32_t> hops;
    hops.reserve(phase.hops.size());
    for (const Wiring::Route& hop : phase.hops) {
      hops.push_back(add(phase.kind, stage, micro_batch, hop.cost, hop.first, hop.second, moment));
    }
    // Another kind of hops is another collective.
    const bool is_last = &phase == &collective.phases.back() || (&phase + 1)->kind != phase.kind;
    moment = add_moment(is_last ? ActivityKind::collective_end : ActivityKind::collective_step,
                        stage, micro_batch, phase.end, std::move(hops));
    if (ends.first == kNone) ends.first = moment;
  }
  ends.last = moment;
  return ends;
}

std::uint32_t GraphWriter::add_gate(std::uint32_t micro_batch, std::vector<std::uint32_t> ready) {
  const std::uint32_t node =
      add(ActivityKind::overhead, {}, micro_batch, wiring_.classes().overhead(), wiring_.host(),
          wiring_.host(), kNone);
  graph_.joins.push_back({node, std::move(ready)});
  return node;
}

OpGraph GraphWriter::take() {
  for (Node& node : graph_.nodes) {
    if (node.input == kNone) node.input = graph_.size();
  }
  return std::move(graph_);
}

}  // namespace plumbline
