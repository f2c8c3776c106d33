// The optimizer's step: from weights and gradients to the next weights.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "calibrate/cpu/buffer.h"
#include "models/profile/optimizer_kind.h"

namespace plumbline {

/// Some of a stage's parameters: first..last-1, in floats.
struct ParameterRange {
  std::size_t first = 0;
  std::size_t last = 0;

  ParameterRange within(const ParameterRange& other) const {
    const std::size_t begin = std::max(first, other.first);
    return {begin, std::max(begin, std::min(last, other.last))};
  }
};

/// The optimizer state of one stage's parameters on one device, or of the device's share of them.
class Optimizer {
 public:
  Optimizer(OptimizerKind kind, const ParameterRange& own, double rate);

  /// Counts a step. update() is called for every parameter after it.
  void step();
  /// Updates its own parameters within `range`: applies the sum of all members' gradients, in their
  /// order, to `before`. `after` may be the same memory.
  void update(const ParameterRange& range, const std::vector<const float*>& gradients,
              const float* before, float* after);

 private:
  /// `gradient` starts at the part's first parameter, `weights` at the stage's.
  void descend_along(const ParameterRange& part, const float* gradient, float* weights);

  OptimizerKind kind_;
  ParameterRange own_;
  float rate_;
  std::int32_t steps_ = 0;
  Buffer first_moment_;
  Buffer second_moment_;
  std::vector<float> sum_;  ///< The sum of several members' gradients, for a piece.
};

}  // namespace plumbline
