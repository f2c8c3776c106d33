// Binding tensors and walking the layers.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cpu/stage.h"

#include <algorithm>

namespace plumbline {
namespace {

constexpr std::size_t kCacheLine = 64;

/// The tensor at an offset in bytes.
template <class Float>
Float* at(Float* block, std::size_t offset) {
  return block + offset / sizeof(float);
}

}  // namespace

CpuStage::CpuStage(const Network& network, std::size_t first, std::size_t last, std::int64_t batch,
                   std::size_t recomputed)
    : layout_(network, first, last, batch, kCacheLine, recomputed), layers_(layout_.layers()) {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const NetworkLayer& layer = *layout_[i].layer;
    layers_[i].kernels = cpu_layer(layer, batch);
    CpuCall& call = layers_[i].call;
    call.kept.resize(layer.kept.size());
    call.left.resize(layer.left_for_weights.size());
    call.parameters.resize(layer.parameters.size());
    call.gradients.resize(layer.parameters.size());
  }
}

std::pair<std::size_t, std::size_t> CpuStage::parameters_of(std::size_t i) const {
  const auto [first, last] = layout_.parameters_of(i);
  return {first / sizeof(float), last / sizeof(float)};
}

void CpuStage::initialise(float* parameters, std::uint64_t seed) const {
  const std::vector<float> values = layout_.initial_values(seed);
  std::copy(values.begin(), values.end(), parameters);
}

void CpuStage::bind(const StageTensors& tensors, std::size_t i) {
  const StageLayout::OfLayer& placed = layout_[i];
  CpuCall& call = layers_[i].call;
  const bool last = i + 1 == layers_.size();
  const auto output_of = [&](std::size_t layer) {
    return tensors.kept_in == KeptIn::kept ? at(tensors.kept, layout_[layer].output)
                                           : at(tensors.checkpoints, layout_[layer].checkpoint);
  };
  call.input = i == 0 ? tensors.input : output_of(i - 1);
  call.ids = i == 0 ? tensors.ids : nullptr;
  call.labels = last ? tensors.labels : nullptr;
  call.output = last ? tensors.output : output_of(i);
  const auto& kept = placed.kept_in(tensors.kept_in);
  float* const block =
      placed.stands_with_checkpoints(tensors.kept_in) ? tensors.checkpoints : tensors.kept;
  for (std::size_t k = 0; k < kept.size(); ++k) call.kept[k] = at(block, kept[k]);
  for (std::size_t p = 0; p < placed.parameters.size(); ++p)
    call.parameters[p] = at(tensors.parameters, placed.parameters[p]);
}

void CpuStage::bind_backward(const StageTensors& tensors, std::size_t i, bool split) {
  bind(tensors, i);
  const StageLayout::OfLayer& placed = layout_[i];
  CpuCall& call = layers_[i].call;
  const auto gradient_of = [&](std::size_t layer) {
    return at(tensors.left, split ? layout_[layer].gradient : layout_[layer].turn);
  };
  call.output_gradient = i + 1 == layers_.size() ? tensors.output_gradient : gradient_of(i + 1);
  call.input_gradient = i == 0 ? tensors.input_gradient : gradient_of(i);
  const auto& left = split ? placed.left : placed.scratch;
  for (std::size_t k = 0; k < left.size(); ++k) call.left[k] = at(tensors.left, left[k]);
  for (std::size_t p = 0; p < placed.parameters.size(); ++p)
    call.gradients[p] = at(tensors.gradients, placed.parameters[p]);
}

void CpuStage::forward(const StageTensors& tensors, Stamps* stamps) {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (stamps) stamps->push_back(now());
    bind(tensors, i);
    layers_[i].kernels->forward(layers_[i].call);
  }
  if (stamps) stamps->push_back(now());
}

void CpuStage::recomputed_forward(const StageTensors& tensors) {
  for (std::size_t i = 0; i < layers_.size() && layout_[i].is_recomputed; ++i) {
    bind(tensors, i);
    layers_[i].kernels->forward(layers_[i].call);
  }
}

void CpuStage::backward(const StageTensors& tensors, std::size_t end, std::size_t begin,
                        Stamps* stamps) {
  for (std::size_t i = end; i-- > begin;) {
    if (stamps) stamps->push_back(now());
    bind_backward(tensors, i, /*split=*/false);
    if (tensors.kept_in == KeptIn::again && layout_[i].is_recomputed)
      layers_[i].kernels->forward(layers_[i].call);
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

void CpuStage::backward_weight(const StageTensors& tensors, std::size_t end, std::size_t begin,
                               Stamps* stamps) {
  for (std::size_t i = end; i-- > begin;) {
    if (stamps) stamps->push_back(now());
    bind_backward(tensors, i, /*split=*/true);
    layers_[i].kernels->backward_weight(layers_[i].call);
  }
  if (stamps) stamps->push_back(now());
}

}  // namespace plumbline
