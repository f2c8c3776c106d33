// The event-driven run of an op graph.
//
// SPDX-License-Identifier: MIT
#include "sim/engine/simulate.h"

#include "base/bug.h"
#include "sim/engine/carriers.h"
#include "sim/engine/engine.h"
#include "sim/engine/fair_share.h"
#include "sim/engine/neighbours.h"
#include "sim/engine/release.h"
#include "sim/graph/consumers.h"

namespace plumbline {
namespace {

/// A due event of one node. It is one 64-bit value, so that the queue moves it in one piece.
class Due {
 public:
  enum What : std::uint8_t {
    released,    ///< It releases its resource.
    arrived,     ///< Its result has arrived, one latency after the release.
    flows,       ///< Its bytes begin to flow on a shared card.
    is_through,  ///< Its flow has ended, or its work is done, if the rates have not changed since.
  };

  /// `version` is the version of the predicted end, for nodes whose rate changes. Requires: node <
  /// OpGraph::kMaxNodes.
  Due(std::uint32_t node, What what, std::uint32_t version = 0)
      : bits_(node | std::uint64_t{what} << 30U | std::uint64_t{version} << 32U) {}

  std::uint32_t node() const { return static_cast<std::uint32_t>(bits_) & ((1U << 30U) - 1); }
  What what() const { return static_cast<What>(bits_ >> 30U & 3U); }
  std::uint32_t version() const { return static_cast<std::uint32_t>(bits_ >> 32U); }

 private:
  std::uint64_t bits_;
};

/// The nodes that hold each resource, in order, in one array.
struct Queues {
  std::vector<std::uint32_t> nodes;
  std::vector<std::uint32_t> next;  ///< Per resource, the first node that has not held it yet.
  std::vector<std::uint32_t> end;

  explicit Queues(const OpGraph& graph) : next(graph.resources() + 1, 0) {
    for (const Node& node : graph.nodes) {
      ++next[node.resource + 1];
      if (node.peer_resource != node.resource) ++next[node.peer_resource + 1];
    }
    for (std::size_t r = 1; r < next.size(); ++r) next[r] += next[r - 1];
    nodes.resize(next.back());
    std::vector<std::uint32_t> at(next.begin(), next.end() - 1);
    for (std::uint32_t i = 0; i < graph.size(); ++i) {
      nodes[at[graph.nodes[i].resource]++] = i;
      if (graph.nodes[i].peer_resource != graph.nodes[i].resource)
        nodes[at[graph.nodes[i].peer_resource]++] = i;
    }
    end.assign(next.begin() + 1, next.end());
    next.pop_back();
  }
};

class Simulation {
 public:
  explicit Simulation(const OpGraph& graph)
      : graph_(graph),
        queues_(graph),
        consumers_(graph),
        carriers_(graph),
        waits_for_(graph.size(), 0) {
    trace_.spans.resize(graph.size());
  }

  Trace run() {
    for (std::uint32_t i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.nodes[i];
      waits_for_[i] = 1U + (node.peer_resource != node.resource ? 1U : 0U) +
                      (node.input != graph_.size() ? 1U : 0U);
    }
    for (const Join& join : graph_.joins)
      waits_for_[join.node] += static_cast<std::uint32_t>(join.inputs.size());
    for (std::uint32_t resource = 0; resource < graph_.resources(); ++resource)
      admit_next(resource);
    engine_.run([this](const Due& due) { handle(due); });
    for (std::uint32_t i = 0; i < graph_.size(); ++i) {
      PLUMBLINE_CHECK(waits_for_[i] == 0, to_text(graph_.activities[i]), waits_for_[i]);
    }
    attribute_releases(graph_, trace_);
    return std::move(trace_);
  }

 private:
  void handle(const Due& due) {
    switch (due.what()) {
      case Due::released:
        return release(due.node());
      case Due::arrived:
        return arrive(due.node());
      case Due::flows:
        return start_flow(due.node());
      case Due::is_through:
        if (neighbours_.concern(due.node())) {
          if (!neighbours_.end(due.node(), due.version(), engine_.now())) return;
          announce(neighbours_.changes());
        } else {
          if (!fair_share_.end(due.node(), due.version(), engine_.now())) return;
          announce(fair_share_.changes());
        }
        release(due.node());
    }
  }

  /// One requirement of `node` is met.
  void satisfy(std::uint32_t node) {
    if (--waits_for_[node] == 0) start(node);
  }

  void start(std::uint32_t node) {
    trace_.spans[node].begin = engine_.now();
    if (traffic_slows_) [[unlikely]]
      begin_traffic(node);
    const Cost& cost = graph_.cost(node);
    if (cost.bytes.count > 0 && carriers_.shares_a_card(node)) {
      if (cost.lead.count() > 0)
        return engine_.schedule(engine_.now() + cost.lead, {node, Due::flows});
      return start_flow(node);
    }
    if (neighbours_.concern(node))
      return announce(neighbours_.start(node, cost.hold, engine_.now()));
    engine_.schedule(engine_.now() + cost.hold, {node, Due::released});
  }

  void begin_traffic(std::uint32_t node) {
    if (neighbours_.concerned_by(node)) announce(neighbours_.begin_traffic(node, engine_.now()));
  }

  void end_traffic(std::uint32_t node) {
    if (neighbours_.concerned_by(node)) announce(neighbours_.end_traffic(node, engine_.now()));
  }

  void start_flow(std::uint32_t node) {
    const Cost& cost = graph_.cost(node);
    const auto [out, in] = carriers_.cards_of(node);
    announce(fair_share_.start(node, cost.bytes, cost.hold - cost.lead, out, in, engine_.now()));
  }

  void announce(const std::vector<FairShare::Change>& changes) {
    for (const FairShare::Change& change : changes) {
      engine_.schedule(change.end, {change.activity, Due::is_through, change.version});
    }
  }

  void release(std::uint32_t node) {
    const Node& n = graph_.nodes[node];
    admit_next(n.resource);
    if (n.peer_resource != n.resource) admit_next(n.peer_resource);
    const Duration latency = graph_.cost(node).latency;
    if (latency.count() > 0) {
      engine_.schedule(engine_.now() + latency, {node, Due::arrived});
    } else {
      arrive(node);
    }
  }

  void arrive(std::uint32_t node) {
    trace_.spans[node].end = engine_.now();
    if (traffic_slows_) [[unlikely]]
      end_traffic(node);
    for (std::uint32_t i = consumers_.first[node]; i < consumers_.first[node + 1]; ++i)
      satisfy(consumers_.nodes[i]);
  }

  void admit_next(std::uint32_t resource) {
    std::uint32_t& next = queues_.next[resource];
    if (next == queues_.end[resource]) return;
    satisfy(queues_.nodes[next++]);
  }

  const OpGraph& graph_;
  Queues queues_;
  Consumers consumers_;
  Carriers carriers_;
  std::vector<std::uint32_t> waits_for_;  ///< Requirements that are not met yet.
  FairShare fair_share_{carriers_.card_rates()};
  Neighbours neighbours_{graph_};
  const bool traffic_slows_ = graph_.overlap.any();
  Engine<Due> engine_;
  Trace trace_;
};

}  // namespace

Trace simulate(const OpGraph& graph) { return Simulation(graph).run(); }

}  // namespace plumbline
