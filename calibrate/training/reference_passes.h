// The three passes of each kind of layer, in plain loops. Tensors of a layer are found by their
// names here. The results of a pass are listed in the order of the layer; reference.cpp checks them
// against the layer's names and sizes.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bug.h"
#include "calibrate/training/reference.h"
#include "models/network/network.h"

namespace plumbline::reference {

struct NamedValues {
  std::string_view name;
  Values values;
};
using NamedList = std::vector<NamedValues>;

/// The values with this name, from a list parallel to `tensors`.
template <class Tensor>
const Values& find(const std::vector<Tensor>& tensors, const std::vector<Values>& values,
                   std::string_view name) {
  PLUMBLINE_CHECK(tensors.size() == values.size(), name, tensors.size(), values.size());
  std::size_t i = 0;
  while (i < tensors.size() && tensors[i].name != name) ++i;
  PLUMBLINE_CHECK(i < tensors.size(), name, tensors.size());
  return values[i];
}

/// The arguments of each pass. The accessors give only what the contract lets it read, so W has no
/// parameters.
struct ForwardPass {
  const ReferenceCall& call;

  const Values& input() const { return call.input; }
  const Values& parameter(std::string_view name) const {
    return find(call.layer.parameters, call.parameters, name);
  }
};

struct InputPass {
  const ReferenceCall& call;
  const ReferenceForward& forward;
  const Values& output_gradient;

  const Values& input() const { return call.input; }
  const Values& output() const { return forward.output; }
  const Values& parameter(std::string_view name) const {
    return find(call.layer.parameters, call.parameters, name);
  }
  const Values& kept(std::string_view name) const {
    return find(call.layer.kept, forward.kept, name);
  }
};

struct WeightPass {
  const ReferenceCall& call;
  const ReferenceForward& forward;
  const ReferenceBackward& backward;
  const Values& output_gradient;

  const Values& input() const { return call.input; }
  const Values& output() const { return forward.output; }
  const Values& kept(std::string_view name) const {
    return find(call.layer.kept, forward.kept, name);
  }
  const Values& left(std::string_view name) const {
    return find(call.layer.left_for_weights, backward.left, name);
  }
};

/// The results of the passes; W gives a list of gradients of parameters.
struct ForwardMade {
  Values output;
  NamedList kept{};
};
struct InputMade {
  Values input_gradient;
  NamedList left{};
  NamedList parameter_gradients{};  ///< Only those that come with the input gradient.
};

/// The extent of the last dimension.
std::int64_t last_extent(const Shape& shape);

// reference_simple.cpp
ForwardMade forward(const Linear& layer, const ForwardPass& pass);
InputMade backward_input(const Linear& layer, const InputPass& pass);
NamedList backward_weight(const Linear& layer, const WeightPass& pass);
ForwardMade forward(const Relu& layer, const ForwardPass& pass);
InputMade backward_input(const Relu& layer, const InputPass& pass);
NamedList backward_weight(const Relu& layer, const WeightPass& pass);
ForwardMade forward(const Gelu& layer, const ForwardPass& pass);
InputMade backward_input(const Gelu& layer, const InputPass& pass);
NamedList backward_weight(const Gelu& layer, const WeightPass& pass);
ForwardMade forward(const LayerNorm& layer, const ForwardPass& pass);
InputMade backward_input(const LayerNorm& layer, const InputPass& pass);
NamedList backward_weight(const LayerNorm& layer, const WeightPass& pass);
ForwardMade forward(const RmsNorm& layer, const ForwardPass& pass);
InputMade backward_input(const RmsNorm& layer, const InputPass& pass);
NamedList backward_weight(const RmsNorm& layer, const WeightPass& pass);
ForwardMade forward(const Lstm& layer, const ForwardPass& pass);
InputMade backward_input(const Lstm& layer, const InputPass& pass);
NamedList backward_weight(const Lstm& layer, const WeightPass& pass);

// reference_transformer.cpp
ForwardMade forward(const AttentionBlock& layer, const ForwardPass& pass);
InputMade backward_input(const AttentionBlock& layer, const InputPass& pass);
NamedList backward_weight(const AttentionBlock& layer, const WeightPass& pass);
ForwardMade forward(const MlpBlock& layer, const ForwardPass& pass);
InputMade backward_input(const MlpBlock& layer, const InputPass& pass);
NamedList backward_weight(const MlpBlock& layer, const WeightPass& pass);
ForwardMade forward(const Embedding& layer, const ForwardPass& pass);
InputMade backward_input(const Embedding& layer, const InputPass& pass);
NamedList backward_weight(const Embedding& layer, const WeightPass& pass);
ForwardMade forward(const Head& layer, const ForwardPass& pass);
InputMade backward_input(const Head& layer, const InputPass& pass);
NamedList backward_weight(const Head& layer, const WeightPass& pass);

// reference_images.cpp
ForwardMade forward(const Conv2d& layer, const ForwardPass& pass);
InputMade backward_input(const Conv2d& layer, const InputPass& pass);
NamedList backward_weight(const Conv2d& layer, const WeightPass& pass);
ForwardMade forward(const MaxPool& layer, const ForwardPass& pass);
InputMade backward_input(const MaxPool& layer, const InputPass& pass);
NamedList backward_weight(const MaxPool& layer, const WeightPass& pass);
ForwardMade forward(const BatchNorm& layer, const ForwardPass& pass);
InputMade backward_input(const BatchNorm& layer, const InputPass& pass);
NamedList backward_weight(const BatchNorm& layer, const WeightPass& pass);
ForwardMade forward(const Flatten& layer, const ForwardPass& pass);
InputMade backward_input(const Flatten& layer, const InputPass& pass);
NamedList backward_weight(const Flatten& layer, const WeightPass& pass);
ForwardMade forward(const ResidualBlock& layer, const ForwardPass& pass);
InputMade backward_input(const ResidualBlock& layer, const InputPass& pass);
NamedList backward_weight(const ResidualBlock& layer, const WeightPass& pass);

}  // namespace plumbline::reference
