// The optimizer's step: from weights and gradients to the next weights.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "calibrate/buffer.h"
#include "models/optimizer_kind.h"

namespace plumbline {

/// The state of the parameters of one stage on one device.
class Optimizer {
 public:
  Optimizer(OptimizerKind kind, std::size_t parameters, double rate);

  /// Counts a step; update() is called for every parameter after it.
  void step();
  /// Parameters first..last-1: the sum of all members' gradients, in their order, is applied to
  /// `before`; `after` may be the same memory.
  void update(std::size_t first, std::size_t last, const std::vector<const float*>& gradients,
              const float* before, float* after);

 private:
  OptimizerKind kind_;
  float rate_;
  std::int32_t steps_ = 0;
  Buffer first_moment_;
  Buffer second_moment_;
  std::vector<float> sum_;  ///< Of several members' gradients.
};

}  // namespace plumbline
