// Layers by hand, as the contract of the kinds has them, and micro-batches with numbers in them.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calibrate/training/reference.h"

namespace plumbline::test {

using Extents = std::vector<std::int64_t>;

/// With parameters, kept tensors and shapes that do not come from the network's own rules.
NetworkLayer layer_of(const LayerSettings& settings, Extents input);

/// A layer with all that one micro-batch needs.
struct Case {
  std::string text;
  NetworkLayer layer;
  std::int64_t batch = 1;
  std::vector<Values> parameters;
  Values input;
  Values labels;
  Values output_gradient;

  ReferenceCall call() const { return {layer, batch, parameters, input, labels}; }
};

/// Filled from the seed.
Case case_of(const LayerSettings& settings, Extents input, std::int64_t batch,
             std::uint64_t seed = 1);
std::vector<Case> cases_without_batch_norm();
/// The seeds keep every relu away from its kink; the check of the gradients watches over it.
std::vector<Case> cases_with_batch_norm();
std::vector<Case> all_cases();

/// All three passes; the gradients of the parameters from wherever they come.
struct Passes {
  ReferenceForward forward;
  ReferenceBackward backward;
  std::vector<Values> parameter_gradients;
};

Passes run(const Case& c);

double largest_difference(const Values& a, const Values& b);

struct MeanAndVariance {
  double mean = 0;
  double variance = 0;
};

MeanAndVariance statistics(const Values& values);

}  // namespace plumbline::test
