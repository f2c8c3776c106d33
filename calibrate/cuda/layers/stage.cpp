// Binding tensors and enqueuing the layers.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/layers/stage.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/bug.h"
#include "calibrate/cuda/libraries/builtin_kernels.h"

namespace plumbline {
namespace {

/// Rounded to the nearest, ties to even.
std::uint16_t bf16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16U & 1U)) >> 16U);
}

}  // namespace

std::vector<std::byte> as_elements(ElementType type, const float* values, std::size_t count) {
  std::vector<std::byte> elements(count * static_cast<std::size_t>(bytes_of(type)));
  if (type != ElementType::bf16) {
    if (count > 0) std::memcpy(elements.data(), values, elements.size());
    return elements;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint16_t bits = bf16_of(values[i]);
    std::memcpy(elements.data() + 2 * i, &bits, sizeof(bits));
  }
  return elements;
}

std::vector<float> as_floats(ElementType type, const std::vector<std::byte>& elements) {
  std::vector<float> values(elements.size() / static_cast<std::size_t>(bytes_of(type)));
  if (type != ElementType::bf16) {
    if (!values.empty()) std::memcpy(values.data(), elements.data(), elements.size());
    return values;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, elements.data() + 2 * i, sizeof(bits));
    values[i] = std::bit_cast<float>(std::uint32_t{bits} << 16U);
  }
  return values;
}

StageLayout CudaStage::layout_of(const Network& network, std::size_t first, std::size_t last,
                                 std::int64_t batch, std::size_t recomputed) {
  return {network, first, last, batch, kCudaAlignment, recomputed};
}

CudaStage::CudaStage(const CudaQueue& queue, const Network& network, std::size_t first,
                     std::size_t last, std::int64_t batch, std::size_t recomputed)
    : type_(network.element),
      layout_(layout_of(network, first, last, batch, recomputed)),
      scratch_(*queue.driver, layout_.scratch()),
      layers_(layout_.layers()) {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const NetworkLayer& layer = *layout_[i].layer;
    layers_[i].kernels = cuda_layer(queue, layer, type_, batch);
    CudaCall& call = layers_[i].call;
    call.kept.resize(layer.kept.size());
    call.left.resize(layer.left_for_weights.size());
    call.parameters.resize(layer.parameters.size());
    call.gradients.resize(layer.parameters.size());
  }
}

std::int64_t CudaStage::parameter_elements() const {
  return static_cast<std::int64_t>(layout_.parameters()) / bytes_of(type_);
}

std::vector<std::byte> CudaStage::initial_parameters(std::uint64_t seed) const {
  const std::vector<float> values = layout_.initial_values(seed);
  return as_elements(type_, values.data(), values.size());
}

void CudaStage::bind(const CudaStageTensors& tensors, std::size_t i) {
  const StageLayout::OfLayer& placed = layout_[i];
  CudaCall& call = layers_[i].call;
  const bool last = i + 1 == layers_.size();
  const auto output_of = [&](std::size_t layer) {
    return tensors.kept_in == KeptIn::kept ? tensors.kept + layout_[layer].output
                                           : tensors.checkpoints + layout_[layer].checkpoint;
  };
  call.input = i == 0 ? tensors.input : output_of(i - 1);
  call.ids = i == 0 ? tensors.ids : 0;
  call.labels = last ? tensors.labels : 0;
  call.output = last ? tensors.output : output_of(i);
  const auto& kept = placed.kept_in(tensors.kept_in);
  const CUdeviceptr block =
      placed.stands_with_checkpoints(tensors.kept_in) ? tensors.checkpoints : tensors.kept;
  for (std::size_t k = 0; k < kept.size(); ++k) call.kept[k] = block + kept[k];
  for (std::size_t p = 0; p < placed.parameters.size(); ++p)
    call.parameters[p] = tensors.parameters + placed.parameters[p];
}

void CudaStage::bind_backward(const CudaStageTensors& tensors, std::size_t i, bool split) {
  bind(tensors, i);
  const StageLayout::OfLayer& placed = layout_[i];
  CudaCall& call = layers_[i].call;
  const CUdeviceptr block = split ? tensors.left : scratch_.data();
  const auto gradient_of = [&](std::size_t layer) {
    return block + (split ? layout_[layer].gradient : layout_[layer].turn);
  };
  call.output_gradient = i + 1 == layers_.size() ? tensors.output_gradient : gradient_of(i + 1);
  call.input_gradient = i == 0 ? tensors.input_gradient : gradient_of(i);
  const auto& left = split ? placed.left : placed.scratch;
  for (std::size_t k = 0; k < left.size(); ++k) call.left[k] = block + left[k];
  for (std::size_t p = 0; p < placed.parameters.size(); ++p)
    call.gradients[p] = tensors.gradients + placed.parameters[p];
}

void CudaStage::measure_pass(const CudaQueue& queue, Pass pass, const CudaStageTensors& tensors) {
  for (std::size_t place = 0; place < layers_.size(); ++place)
    measure_layer(queue, pass, tensors, layer_at(pass, place));
}

void CudaStage::walk_down(const CudaQueue& queue, Pass pass, const CudaStageTensors& tensors,
                          std::size_t end, std::size_t begin) {
  for (std::size_t i = std::min(end, layers_.size()); i-- > begin;)
    measure_layer(queue, pass, tensors, i);
}

void CudaStage::measure_again(const CudaQueue& queue, const CudaStageTensors& tensors) {
  for (std::size_t i = 0; i < layers_.size() && layout_[i].is_recomputed; ++i)
    measure_layer(queue, Pass::forward, tensors, i);
}

void CudaStage::measure_layer(const CudaQueue& queue, Pass pass, const CudaStageTensors& tensors,
                              std::size_t layer) {
  const bool split = pass == Pass::backward_input || pass == Pass::backward_weight;
  CudaLayer& kernels = *layers_[layer].kernels;
  const CudaCall& call = layers_[layer].call;
  if (pass == Pass::forward) {
    bind(tensors, layer);
    kernels.forward(queue, call);
    return;
  }
  PLUMBLINE_CHECK(!is_update(pass), layer);
  bind_backward(tensors, layer, split);
  if (tensors.kept_in == KeptIn::again && layout_[layer].is_recomputed)
    kernels.forward(queue, call);
  if (pass != Pass::backward_weight) kernels.backward_input(queue, call);
  if (pass != Pass::backward_input) kernels.backward_weight(queue, call);
}

CudaOptimizer::CudaOptimizer(const CudaQueue& queue, OptimizerKind kind, ElementType type,
                             std::int64_t elements, double rate)
    : kind_(kind), type_(type), elements_(elements), rate_(rate) {
  if (kind == OptimizerKind::gradient_descent) return;
  const auto zero = [&](CudaScratch& memory, std::int64_t floats) {
    const std::size_t bytes = static_cast<std::size_t>(floats) * sizeof(float);
    memory = CudaScratch(*queue.driver, bytes);
    if (bytes > 0)
      PLUMBLINE_CUDA(*queue.driver, cuMemsetD8Async, memory.data(), 0, bytes, queue.stream);
  };
  zero(first_moment_, elements);
  zero(second_moment_, elements);
  zero(steps_, cuda::kStepFloats);
}

void CudaOptimizer::step(const CudaQueue& queue) {
  if (kind_ == OptimizerKind::adam) cuda::count_step(queue, steps_.data());
}

void CudaOptimizer::update(const CudaQueue& queue, const CudaUpdate& what, CUdeviceptr gradients,
                           CUdeviceptr before, CUdeviceptr after) {
  const auto [first, last, state] = what;
  if (first == last) return;
  const auto element = static_cast<CUdeviceptr>(first) * static_cast<CUdeviceptr>(bytes_of(type_));
  const auto moment = static_cast<CUdeviceptr>(state) * sizeof(float);
  if (kind_ == OptimizerKind::gradient_descent) {
    cuda::descend(queue, type_, after + element, before + element, gradients + element, rate_,
                  last - first);
  } else {
    cuda::descend_with_moments(queue, type_, after + element, before + element, gradients + element,
                               first_moment_.data() + moment, second_moment_.data() + moment,
                               steps_.data(), rate_, last - first);
  }
}

std::size_t CudaOptimizer::bytes() const {
  if (kind_ == OptimizerKind::gradient_descent) return 0;
  return (2 * static_cast<std::size_t>(elements_) + static_cast<std::size_t>(cuda::kStepFloats)) *
         sizeof(float);
}

}  // namespace plumbline
