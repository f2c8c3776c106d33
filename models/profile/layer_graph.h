// The layers of a model and the edges from producers to consumers: a directed acyclic graph.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/units.h"

namespace plumbline {

/// The smallest unit with costs. Costs that depend on the batch size (times, outputs) are in
/// Profile.
struct Layer {
  std::string name;
  std::string kind;  ///< "linear", "conv2d", ...; "" = unknown.
  Bytes parameters;
  /// The part of `parameters` that every device of the profile's group has a copy of. The group
  /// adds up their gradients.
  Bytes replicated{};
  /// The part of `replicated` that other devices of the group step, see share_steps().
  Bytes stepped_elsewhere{};
  /// The part of `replicated` whose gradients other devices of the group add up over copies of the
  /// stage, see share_reduction().
  Bytes reduced_elsewhere{};
  /// The layer whose table this layer uses, too, such as the embedding of a tied head; "" = none.
  std::string tied_to{};
  /// The part of `parameters` that is a copy of that table; 0 where no copy is needed, see
  /// drop_copy().
  Bytes tied{};

  Bytes stepped() const { return parameters - stepped_elsewhere; }
  Bytes reduced() const { return parameters - reduced_elsewhere; }
};

/// An edge: `to` consumes the output of `from`.
struct LayerEdge {
  LayerId from;
  LayerId to;

  friend auto operator<=>(const LayerEdge&, const LayerEdge&) = default;
};

/// Layers in the order of the file, and the edges between them. Invariants: edges name layers that
/// exist, none joins a layer to itself, each occurs once. A graph may have a cycle until
/// find_cycle() has found none. It knows no times and no devices.
class LayerGraph {
 public:
  /// A chain: each layer consumes the one before it.
  static LayerGraph chain(std::vector<Layer> layers);

  LayerId add_layer(Layer layer);
  /// Adds all edges at once, in O(n log n). Requires: each joins two layers that exist and differ.
  /// A repeated edge is kept once.
  void add_edges(const std::vector<LayerEdge>& edges);

  /// Divides the steps of replicated parameters among the `devices` of a group. Each steps its
  /// share and holds optimizer state for it (Rajbhandari et al. 2020, ZeRO, section 5.1); the
  /// largest share counts. Idempotent.
  void share_steps(std::int64_t devices);

  /// Divides the reduction of a layer's replicated parameters among the `devices` of a group. The
  /// group has added up their gradients; each device reduces its share with the copies of the
  /// stage. Idempotent.
  void share_reduction(LayerId layer, std::int64_t devices);

  /// Takes the copy of another layer's table from a layer whose devices hold that table anyway.
  void drop_copy(LayerId layer);

  std::size_t size() const { return layers_.size(); }
  const Layer& layer(LayerId id) const { return layers_[id.value]; }
  const std::vector<Layer>& layers() const { return layers_; }
  /// Sorted by producer, then consumer.
  const std::vector<LayerEdge>& edges() const { return edges_; }

  /// The layers of one cycle in the order of its edges; empty where there is none.
  std::vector<LayerId> find_cycle() const;

  /// Every layer behind all layers that it consumes. Among ready layers, the first in the file
  /// comes first. Requires: no cycle.
  std::vector<LayerId> topological_order() const;

  /// Whether a path of edges leads from `from` to `to`. A layer reaches itself.
  bool reaches(LayerId from, LayerId to) const;

 private:
  std::vector<Layer> layers_;
  std::vector<LayerEdge> edges_;
};

}  // namespace plumbline
