// Times of events put in order, and ledgers that follow them.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/program/measured_iteration.h"

#include <algorithm>

namespace plumbline {
namespace {

/// The peak memory of each device by its ledger, for an iteration that has ended.
std::vector<DeviceMemory> books_of(const OpGraph& graph, const CudaProgram& program,
                                   const Trace& trace, std::vector<Ledger>& ledgers) {
  for (Ledger& ledger : ledgers) ledger.restart();
  const auto ns = [](SimTime time) { return time.time_since_epoch().count(); };
  for (const std::uint32_t node : program.order) {
    const Span& span = trace.spans[node];
    const ActivityKind kind = graph.activities[node].kind;
    if (is_transfer(kind)) {
      ledgers[graph.receiver(node)].receives(node, ns(span.begin));
      ledgers[graph.sender(node)].has_sent(node, ns(span.end));
    } else if (is_compute(kind)) {
      Ledger& ledger = ledgers[graph.nodes[node].resource];
      ledger.version_of(node);
      ledger.begin(node, ns(span.begin));
      ledger.end(node, ns(span.end));
    }
  }
  std::vector<DeviceMemory> memory;
  memory.reserve(ledgers.size());
  for (const Ledger& ledger : ledgers) memory.push_back(ledger.peak());
  return memory;
}

}  // namespace

MeasuredIteration measured_iteration(const OpGraph& graph, const CudaProgram& program,
                                     std::vector<Ledger>& ledgers, const ToldTimes& told) {
  MeasuredIteration measured;
  Trace& trace = measured.trace;
  trace.spans.resize(graph.size());
  std::vector<SimTime> on_stream(graph.slots());
  const std::vector<const Join*> joins = joins_by_node(graph);
  for (const std::uint32_t node : program.order) {
    // Two devices' clocks may differ a little: no node begins before the end of what it waited for.
    SimTime released;
    const auto after = [&](std::uint32_t one) {
      released = std::max(released, trace.spans[one].end);
    };
    if (graph.nodes[node].input != graph.size()) after(graph.nodes[node].input);
    if (joins[node]) {
      for (const std::uint32_t one : joins[node]->inputs) after(one);
    }
    for (const std::uint32_t resource :
         {graph.nodes[node].resource, graph.nodes[node].peer_resource}) {
      if (resource < graph.slots()) released = std::max(released, on_stream[resource]);
    }
    Span& span = trace.spans[node];
    span = {released, released, kNobody};
    if (const std::uint32_t last = program.step_of[node]; last != kNone32) {
      const std::uint32_t first =
          program.first_step_of[node] == kNone32 ? last : program.first_step_of[node];
      const auto [begin, end] = told(first, last);
      span.begin = std::max(released, SimTime{begin});
      span.end = std::max(span.begin, SimTime{end});
    }
    for (const std::uint32_t resource :
         {graph.nodes[node].resource, graph.nodes[node].peer_resource}) {
      if (resource < graph.slots()) on_stream[resource] = span.end;
    }
  }
  count_hand_over(graph, measured);
  measured.memory = books_of(graph, program, trace, ledgers);
  return measured;
}

}  // namespace plumbline
