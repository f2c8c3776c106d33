// Placing tensors one after the other.
//
// SPDX-License-Identifier: MIT
#include "calibrate/training/stage_layout.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "base/bug.h"
#include "base/parallel.h"
#include "base/random.h"
#include "calibrate/training/initial_parameters.h"

namespace plumbline {
namespace {

/// A block that grows.
class Region {
 public:
  explicit Region(std::size_t alignment) : alignment_(alignment) {}

  std::size_t place(std::size_t bytes) {
    const std::size_t at = size_;
    size_ += (bytes + alignment_ - 1) / alignment_ * alignment_;
    return at;
  }
  std::size_t size() const { return size_; }

 private:
  std::size_t alignment_;
  std::size_t size_ = 0;
};

/// The sizes of tensors.
struct Sizes {
  std::size_t element = 4;
  std::int64_t batch = 1;

  std::size_t of(const Shape& shape) const {
    return static_cast<std::size_t>(shape.elements() * batch) * element;
  }
  std::size_t of(const KeptTensor& tensor) const {
    return static_cast<std::size_t>(tensor.shape.elements() * (tensor.per_sample ? batch : 1)) *
           (tensor.statistic ? sizeof(float) : element);
  }
  std::size_t of(const Parameter& parameter) const {
    return static_cast<std::size_t>(parameter.shape.elements()) * element;
  }
};

}  // namespace

StageLayout::StageLayout(const Network& network, std::size_t first, std::size_t last,
                         std::int64_t batch, std::size_t alignment, std::size_t recomputed)
    : element_(static_cast<std::size_t>(bytes_of(network.element))) {
  PLUMBLINE_CHECK(first <= last && last < network.layers.size(), first, last);
  PLUMBLINE_CHECK(alignment % sizeof(float) == 0 && alignment > 0, alignment);
  const Sizes sizes{element_, batch};
  const auto output_of = [&](const NetworkLayer& layer) {
    return static_cast<std::size_t>(output_bytes(network, layer, batch).count);
  };
  layers_.resize(last - first + 1);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    layers_[i].layer = &network.layers[first + i];
    layers_[i].number = first + i;
    layers_[i].is_recomputed = i < recomputed;
  }
  Region parameters(alignment), kept(alignment), left(alignment), scratch(alignment);
  Region checkpoints(alignment), recomputed_at_once(alignment);
  std::size_t widest = 0;  // of the gradients between layers
  for (std::size_t i = 1; i < layers_.size(); ++i)
    widest = std::max(widest, sizes.of(layers_[i].layer->input));
  std::array<std::size_t, 2> turns{};
  for (std::size_t& turn : turns) turn = scratch.place(widest);
  scratch_ = scratch.size();
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    OfLayer& placed = layers_[i];
    const NetworkLayer& layer = *placed.layer;
    for (const Parameter& parameter : layer.parameters)
      placed.parameters.push_back(parameters.place(sizes.of(parameter)));
    if (i + 1 < layers_.size()) placed.output = kept.place(output_of(layer));
    if (i + 1 < layers_.size()) placed.checkpoint = checkpoints.place(output_of(layer));
    Region again(alignment);
    for (const KeptTensor& tensor : layer.kept) {
      const std::size_t size = sizes.of(tensor);
      placed.kept.push_back(kept.place(size));
      placed.again.push_back((placed.is_recomputed ? again : checkpoints).place(size));
      placed.recomputed_at_once.push_back(placed.is_recomputed ? recomputed_at_once.place(size)
                                                               : placed.again.back());
    }
    again_ = std::max(again_, again.size());
    if (i > 0) placed.gradient = left.place(sizes.of(layer.input));
    placed.turn = turns[i % 2];
    Region own = scratch;  // the layers' own scratch takes turns too
    for (const KeptTensor& tensor : layer.left_for_weights) {
      placed.left.push_back(left.place(sizes.of(tensor)));
      placed.scratch.push_back(own.place(sizes.of(tensor)));
    }
    scratch_ = std::max(scratch_, own.size());
  }
  parameters_ = parameters.size();
  kept_ = kept.size();
  checkpoints_ = checkpoints.size();
  recomputed_at_once_ = recomputed_at_once.size();
  left_ = left.size();
  output_ = output_of(*layers_.back().layer);
  const NetworkLayer& front = *layers_.front().layer;
  input_ = std::holds_alternative<Embedding>(front.settings) ? 0 : sizes.of(front.input);
}

std::pair<std::size_t, std::size_t> StageLayout::parameters_of(std::size_t i) const {
  const auto begin = [&](std::size_t from) {
    for (std::size_t l = from; l < layers_.size(); ++l) {
      if (!layers_[l].parameters.empty()) return layers_[l].parameters.front();
    }
    return parameters_;
  };
  if (layers_[i].parameters.empty()) return {begin(i), begin(i)};
  return {begin(i), begin(i + 1)};
}

std::vector<float> StageLayout::initial_values(std::uint64_t seed) const {
  std::vector<float> all(parameters_ / element_, 0.0F);
  const std::atomic<bool> never{false};
  for_each_parallel(layers_.size(), available_cores(), never, [&](std::uint64_t i) {
    const OfLayer& placed = layers_[i];
    const auto values = initial_parameters(*placed.layer, random_bits(seed, placed.number));
    for (std::size_t p = 0; p < values.size(); ++p) {
      std::transform(values[p].begin(), values[p].end(),
                     all.begin() + static_cast<std::ptrdiff_t>(placed.parameters[p] / element_),
                     [](double value) { return static_cast<float>(value); });
    }
  });
  return all;
}

}  // namespace plumbline
