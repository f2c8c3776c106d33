// Graph questions answered by Boost.Graph, whose headers stay in this file.
//
// SPDX-License-Identifier: MIT
#include "models/profile/layer_graph.h"

#include <algorithm>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/depth_first_search.hpp>
#include <functional>
#include <queue>

#include "base/bug.h"
#include "models/hardware/cluster.h"

namespace plumbline {
namespace {

using BoostGraph = boost::compressed_sparse_row_graph<boost::directedS>;

BoostGraph to_boost(const LayerGraph& graph) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  pairs.reserve(graph.edges().size());
  for (const LayerEdge& edge : graph.edges()) pairs.emplace_back(edge.from.value, edge.to.value);
  return {boost::edges_are_sorted, pairs.begin(), pairs.end(), graph.size()};
}

/// Thrown out of a search that has its answer: Boost.Graph's documented way to stop one.
struct Stop {};

/// Remembers the tree path, and stops at the first edge that closes a cycle.
struct CycleFinder : boost::default_dfs_visitor {
  std::vector<std::uint32_t>* parent;
  std::vector<LayerId>* cycle;

  void tree_edge(BoostGraph::edge_descriptor edge, const BoostGraph& graph) const {
    (*parent)[target(edge, graph)] = static_cast<std::uint32_t>(source(edge, graph));
  }
  void back_edge(BoostGraph::edge_descriptor edge, const BoostGraph& graph) const {
    const auto first = static_cast<std::uint32_t>(target(edge, graph));
    for (auto at = static_cast<std::uint32_t>(source(edge, graph)); at != first;
         at = (*parent)[at]) {
      cycle->push_back({at});
    }
    cycle->push_back({first});
    std::reverse(cycle->begin(), cycle->end());
    throw Stop{};
  }
};

struct Finder : boost::default_dfs_visitor {
  std::uint32_t wanted;

  void discover_vertex(std::uint64_t layer, const BoostGraph&) const {
    if (layer == wanted) throw Stop{};
  }
};

}  // namespace

LayerGraph LayerGraph::chain(std::vector<Layer> layers) {
  LayerGraph graph;
  graph.layers_ = std::move(layers);
  for (std::uint32_t i = 1; i < graph.layers_.size(); ++i) graph.edges_.push_back({{i - 1}, {i}});
  return graph;
}

LayerId LayerGraph::add_layer(Layer layer) {
  layers_.push_back(std::move(layer));
  return {static_cast<std::uint32_t>(layers_.size() - 1)};
}

void LayerGraph::share_steps(std::int64_t devices) {
  for (Layer& layer : layers_) layer.stepped_elsewhere = share_volume(layer.replicated, devices);
}

void LayerGraph::drop_copy(LayerId id) {
  Layer& layer = layers_[id.value];
  const auto share = [](Bytes part, Bytes of) {
    return of.count == 0 ? 0.0 : static_cast<double>(part.count) / static_cast<double>(of.count);
  };
  const double stepped = share(layer.stepped_elsewhere, layer.replicated);
  const double reduced = share(layer.reduced_elsewhere, layer.replicated);
  layer.parameters -= layer.tied;
  layer.tied = {};
  layer.replicated = std::min(layer.replicated, layer.parameters);
  const auto part = [&](double of_all) {
    return Bytes{static_cast<std::int64_t>(of_all * static_cast<double>(layer.replicated.count))};
  };
  layer.stepped_elsewhere = part(stepped);
  layer.reduced_elsewhere = part(reduced);
}

void LayerGraph::share_reduction(LayerId layer, std::int64_t devices) {
  layers_[layer.value].reduced_elsewhere = share_volume(layers_[layer.value].replicated, devices);
}

void LayerGraph::add_edges(const std::vector<LayerEdge>& edges) {
  for (const LayerEdge& edge : edges) {
    PLUMBLINE_CHECK(edge.from.value < size() && edge.to.value < size() && edge.from != edge.to,
                    edge.from.value, edge.to.value, size());
  }
  edges_.insert(edges_.end(), edges.begin(), edges.end());
  std::sort(edges_.begin(), edges_.end());
  edges_.erase(std::unique(edges_.begin(), edges_.end()), edges_.end());
}

std::vector<LayerId> LayerGraph::find_cycle() const {
  std::vector<std::uint32_t> parent(size(), 0);
  std::vector<LayerId> cycle;
  CycleFinder finder;
  finder.parent = &parent;
  finder.cycle = &cycle;
  try {
    std::vector<boost::default_color_type> colors(size());
    boost::depth_first_search(to_boost(*this), finder, colors.data());
  } catch (const Stop&) {
    return cycle;
  }
  return {};
}

std::vector<LayerId> LayerGraph::topological_order() const {
  const BoostGraph graph = to_boost(*this);
  std::vector<std::uint32_t> waits_for(size(), 0);
  for (const LayerEdge& edge : edges_) ++waits_for[edge.to.value];
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t layer = 0; layer < size(); ++layer) {
    if (waits_for[layer] == 0) ready.push(layer);
  }
  std::vector<LayerId> order;
  order.reserve(size());
  while (!ready.empty()) {
    const std::uint32_t layer = ready.top();
    ready.pop();
    order.push_back({layer});
    for (auto [at, end] = adjacent_vertices(vertex(layer, graph), graph); at != end; ++at) {
      if (--waits_for[*at] == 0) ready.push(static_cast<std::uint32_t>(*at));
    }
  }
  PLUMBLINE_CHECK(order.size() == size(), order.size(), size());
  return order;
}

bool LayerGraph::reaches(LayerId from, LayerId to) const {
  Finder finder;
  finder.wanted = to.value;
  try {
    const BoostGraph graph = to_boost(*this);
    std::vector<boost::default_color_type> colors(size());
    boost::depth_first_visit(graph, vertex(from.value, graph), finder, colors.data());
  } catch (const Stop&) {
    return true;
  }
  return false;
}

}  // namespace plumbline
