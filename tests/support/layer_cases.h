// Layers, their input numbers and the reference's results, for the tests of kernels.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "calibrate/training/reference.h"
#include "models/network/network.h"

namespace plumbline::test {

using Floats = std::vector<float>;
using Extents = std::vector<std::int64_t>;

/// Uniform fp32 numbers from a seed.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : seed_(seed) {}

  float between(double low, double high) {
    return static_cast<float>(low + (high - low) * random_uniform(seed_, place_++));
  }
  std::int64_t below(std::int64_t limit) {
    const double unit = random_uniform(seed_, place_++);
    return static_cast<std::int64_t>(unit * static_cast<double>(limit));
  }
  Floats between(double low, double high, std::int64_t count) {
    Floats values(count);
    for (float& value : values) value = between(low, high);
    return values;
  }
  std::vector<std::int32_t> below(std::int64_t limit, std::int64_t count) {
    std::vector<std::int32_t> values(count);
    for (std::int32_t& value : values) value = static_cast<std::int32_t>(below(limit));
    return values;
  }

 private:
  std::uint64_t seed_;
  std::uint64_t place_ = 0;
};

template <class Number>
Values to_values(const std::vector<Number>& numbers) {
  return {numbers.begin(), numbers.end()};
}

inline Floats nothing(std::int64_t count) {
  return Floats(count, std::numeric_limits<float>::quiet_NaN());
}

/// The largest difference, as a share of the largest element.
inline double difference(const Floats& found, const Values& expected) {
  REQUIRE(found.size() == expected.size());
  double largest = 1e-30;
  double off = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    const double here = std::abs(static_cast<double>(found[i]) - expected[i]);
    off = std::isnan(here) ? std::numeric_limits<double>::infinity() : std::max(off, here);
  }
  return off / largest;
}

inline std::int64_t elements_of(const KeptTensor& tensor, std::int64_t batch) {
  return tensor.shape.elements() * (tensor.per_sample ? batch : 1);
}

inline NetworkLayer derived(const LayerSettings& settings, Extents input) {
  NetworkInput from{{std::move(input)}, std::nullopt};
  if (const auto* embedding = std::get_if<Embedding>(&settings))
    from.vocabulary = embedding->vocabulary;
  auto layer = derive_layer(settings, from, {});
  REQUIRE(layer);
  return *std::move(layer);
}

/// The results of F, I and W.
struct ReferencePasses {
  ReferenceForward forward;
  ReferenceBackward backward;
  std::vector<Values> gradients;  ///< All gradients.
};

inline ReferencePasses run_reference(const NetworkLayer& layer, std::int64_t batch,
                                     const std::vector<Values>& parameters, const Values& input,
                                     const Values& labels, const Values& output_gradient) {
  const ReferenceCall call{layer, batch, parameters, input, labels};
  ReferencePasses made;
  made.forward = reference_forward(call);
  made.backward = reference_backward_input(call, made.forward, output_gradient);
  made.gradients = reference_backward_weight(call, made.forward, made.backward, output_gradient);
  for (std::size_t i = 0; i < layer.parameters.size(); ++i) {
    if (layer.parameters[i].with_input) made.gradients[i] = made.backward.parameter_gradients[i];
  }
  return made;
}

}  // namespace plumbline::test
