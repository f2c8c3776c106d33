// Boost.Graph writes the format and quotes names where necessary.
//
// SPDX-License-Identifier: MIT
#include "sim/report/dot.h"

#include <fmt/format.h>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/graphviz.hpp>
#include <sstream>

#include "base/quantity.h"

namespace plumbline {
namespace {

struct DrawnNode {
  std::string label;
  std::string attributes;
};
struct DrawnEdge {
  bool is_order = false;
};
using Drawing =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, DrawnNode, DrawnEdge>;

constexpr std::string_view kFills[] = {"#cfe2f3", "#d9ead3", "#fff2cc", "#f4cccc",
                                       "#d9d2e9", "#fce5cd", "#d0e0e3", "#ead1dc"};

std::string fill(std::uint32_t index) {
  return fmt::format(R"(,style=filled,fillcolor="{}")", kFills[index % std::size(kFills)]);
}

std::string write(const Drawing& drawing) {
  std::ostringstream out;
  boost::write_graphviz(
      out, drawing,
      [&](std::ostream& text, Drawing::vertex_descriptor v) {
        text << "[label=" << boost::escape_dot_string(drawing[v].label) << drawing[v].attributes
             << "]";
      },
      [&](std::ostream& text, const Drawing::edge_descriptor& e) {
        if (drawing[e].is_order) text << "[style=dotted]";
      },
      [](std::ostream& text) { text << "rankdir=LR\nnode [shape=box,fontname=\"sans\"]\n"; });
  return out.str();
}

std::string_view shape(ActivityKind kind) {
  if (is_compute(kind)) return "";
  return is_shown(kind) ? ",shape=cds" : ",shape=point";
}

}  // namespace

std::string layer_graph_dot(const LayerGraph& graph, const Partition& partition) {
  Drawing drawing(graph.size());
  for (std::uint32_t s = 0; s < partition.stages.size(); ++s) {
    for (const LayerId layer : partition.stages[s].layers) {
      drawing[layer.value] = {fmt::format("{}\nstage {}, {}", graph.layer(layer).name, s,
                                          to_text(graph.layer(layer).parameters)),
                              fill(s)};
    }
  }
  for (const LayerEdge& edge : graph.edges())
    boost::add_edge(edge.from.value, edge.to.value, drawing);
  return write(drawing);
}

Result<std::string> op_graph_dot(const OpGraph& graph) {
  if (graph.size() > kMaxDrawnNodes) {
    return input_error(
        {},
        fmt::format("the op graph has {} nodes, more than the {} that are drawn", graph.size(),
                    kMaxDrawnNodes),
        "fewer micro-batches or mini-batches; simulate --trace shows runs of any size");
  }
  Drawing drawing(graph.size());
  std::vector<std::uint32_t> last(graph.resources(), graph.size());
  auto join = graph.joins.begin();
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    const Activity& activity = graph.activities[i];
    const bool on_device = is_compute(activity.kind);
    drawing[i] = {on_device ? fmt::format("{}\ndevice {}", to_text(activity),
                                          graph.devices[node.resource].value)
                            : to_text(activity),
                  std::string(shape(activity.kind)) + (on_device ? fill(node.resource) : "")};
    if (node.input != graph.size()) boost::add_edge(node.input, i, drawing);
    if (join != graph.joins.end() && join->node == i) {
      for (const std::uint32_t producer : join->inputs) boost::add_edge(producer, i, drawing);
      ++join;
    }
    for (const std::uint32_t resource : {node.resource, node.peer_resource}) {
      const std::uint32_t before = last[resource];
      if (before != graph.size() && before != i && before != node.input)
        boost::add_edge(before, i, DrawnEdge{true}, drawing);
      last[resource] = i;
    }
  }
  return write(drawing);
}

}  // namespace plumbline
