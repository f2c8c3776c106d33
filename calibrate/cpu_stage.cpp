// Placing tensors and walking the layers.
// SPDX-License-Identifier: MIT
#include "calibrate/cpu_stage.h"

#include <algorithm>
#include <array>

#include "calibrate/reference.h"
#include "models/bug.h"
#include "models/random.h"

namespace plumbline {
namespace {

/// Tensors begin at multiples of a cache line.
class Layout {
 public:
  std::size_t place(std::size_t floats) {
    const std::size_t at = size_;
    size_ += (floats + 15) / 16 * 16;
    return at;
  }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_ = 0;
};

std::size_t elements(const Shape& shape, std::int64_t batch) {
  return static_cast<std::size_t>(shape.elements() * batch);
}

std::size_t elements(const KeptTensor& tensor, std::int64_t batch) {
  return elements(tensor.shape, tensor.per_sample ? batch : 1);
}

std::uint64_t seed_of_layer(std::uint64_t seed, std::size_t number) {
  return random_bits(seed, number);
}

}  // namespace

CpuStage::CpuStage(const Network& network, std::size_t first, std::size_t last,
                   std::int64_t batch) {
  PLUMBLINE_CHECK(first <= last && last < network.layers.size(), first, last);
  layers_.resize(last - first + 1);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    layers_[i].layer = &network.layers[first + i];
    layers_[i].number = first + i;
    layers_[i].kernels = cpu_layer(*layers_[i].layer, batch);
  }
  place_all(batch);
}

void CpuStage::place_all(std::int64_t batch) {
  Layout parameters, kept, left, scratch;
  std::size_t widest = 0;  // of the gradients between layers
  for (std::size_t i = 1; i < layers_.size(); ++i)
    widest = std::max(widest, elements(layers_[i].layer->input, batch));
  std::array<std::size_t, 2> turns{};
  for (std::size_t& turn : turns) turn = scratch.place(widest);
  std::size_t scratch_most = scratch.size();
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    Placed& placed = layers_[i];
    const NetworkLayer& layer = *placed.layer;
    for (const Parameter& parameter : layer.parameters)
      placed.parameters.push_back(parameters.place(elements(parameter.shape, 1)));
    if (i + 1 < layers_.size()) placed.output = kept.place(elements(layer.output, batch));
    for (const KeptTensor& tensor : layer.kept)
      placed.kept.push_back(kept.place(elements(tensor, batch)));
    if (i > 0) placed.gradient = left.place(elements(layer.input, batch));
    placed.turn = turns[i % 2];
    Layout own = scratch;  // the layers' own scratch takes turns too
    for (const KeptTensor& tensor : layer.left_for_weights) {
      placed.left.push_back(left.place(elements(tensor, batch)));
      placed.scratch.push_back(own.place(elements(tensor, batch)));
    }
    scratch_most = std::max(scratch_most, own.size());
    CpuCall& call = placed.call;
    call.kept.resize(layer.kept.size());
    call.left.resize(layer.left_for_weights.size());
    call.parameters.resize(layer.parameters.size());
    call.gradients.resize(layer.parameters.size());
  }
  parameter_floats_ = parameters.size();
  kept_floats_ = kept.size();
  left_floats_ = left.size();
  scratch_floats_ = scratch_most;
  output_floats_ = elements(layers_.back().layer->output, batch);
  const NetworkLayer& first = *layers_.front().layer;
  input_floats_ =
      std::holds_alternative<Embedding>(first.settings) ? 0 : elements(first.input, batch);
}

std::pair<std::size_t, std::size_t> CpuStage::parameters_of(std::size_t i) const {
  const auto begin = [&](std::size_t from) {
    for (std::size_t l = from; l < layers_.size(); ++l) {
      if (!layers_[l].parameters.empty()) return layers_[l].parameters.front();
    }
    return parameter_floats_;
  };
  if (layers_[i].parameters.empty()) return {begin(i), begin(i)};
  return {begin(i), begin(i + 1)};
}

void CpuStage::initialise(float* parameters, std::uint64_t seed) const {
  std::fill_n(parameters, parameter_floats_, 0.0F);  // between the tensors too
  for (const Placed& placed : layers_) {
    const auto values = initial_parameters(*placed.layer, seed_of_layer(seed, placed.number));
    for (std::size_t p = 0; p < values.size(); ++p) {
      std::transform(values[p].begin(), values[p].end(), parameters + placed.parameters[p],
                     [](double value) { return static_cast<float>(value); });
    }
  }
}

void CpuStage::bind(const StageTensors& tensors, std::size_t i) {
  Placed& placed = layers_[i];
  CpuCall& call = placed.call;
  const bool last = i + 1 == layers_.size();
  call.input = i == 0 ? tensors.input : tensors.kept + layers_[i - 1].output;
  call.ids = i == 0 ? tensors.ids : nullptr;
  call.labels = last ? tensors.labels : nullptr;
  call.output = last ? tensors.output : tensors.kept + placed.output;
  for (std::size_t k = 0; k < placed.kept.size(); ++k) call.kept[k] = tensors.kept + placed.kept[k];
  for (std::size_t p = 0; p < placed.parameters.size(); ++p)
    call.parameters[p] = tensors.parameters + placed.parameters[p];
}

void CpuStage::bind_backward(const StageTensors& tensors, std::size_t i, bool split) {
  bind(tensors, i);
  Placed& placed = layers_[i];
  CpuCall& call = placed.call;
  const auto gradient_of = [&](std::size_t layer) {
    return tensors.left + (split ? layers_[layer].gradient : layers_[layer].turn);
  };
  call.output_gradient = i + 1 == layers_.size() ? tensors.output_gradient : gradient_of(i + 1);
  call.input_gradient = i == 0 ? tensors.input_gradient : gradient_of(i);
  const auto& left = split ? placed.left : placed.scratch;
  for (std::size_t k = 0; k < left.size(); ++k) call.left[k] = tensors.left + left[k];
  for (std::size_t p = 0; p < placed.parameters.size(); ++p)
    call.gradients[p] = tensors.gradients + placed.parameters[p];
}

void CpuStage::forward(const StageTensors& tensors, Stamps* stamps) {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (stamps) stamps->push_back(now());
    bind(tensors, i);
    layers_[i].kernels->forward(layers_[i].call);
  }
  if (stamps) stamps->push_back(now());
}

void CpuStage::backward(const StageTensors& tensors, Stamps* stamps) {
  for (std::size_t i = layers_.size(); i-- > 0;) {
    if (stamps) stamps->push_back(now());
    bind_backward(tensors, i, /*split=*/false);
    layers_[i].kernels->backward_input(layers_[i].call);
    layers_[i].kernels->backward_weight(layers_[i].call);
  }
  if (stamps) stamps->push_back(now());
}

void CpuStage::backward_input(const StageTensors& tensors, Stamps* stamps) {
  for (std::size_t i = layers_.size(); i-- > 0;) {
    if (stamps) stamps->push_back(now());
    bind_backward(tensors, i, /*split=*/true);
    layers_[i].kernels->backward_input(layers_[i].call);
  }
  if (stamps) stamps->push_back(now());
}

void CpuStage::backward_weight(const StageTensors& tensors, Stamps* stamps) {
  for (std::size_t i = layers_.size(); i-- > 0;) {
    if (stamps) stamps->push_back(now());
    bind_backward(tensors, i, /*split=*/true);
    layers_[i].kernels->backward_weight(layers_[i].call);
  }
  if (stamps) stamps->push_back(now());
}

}  // namespace plumbline
