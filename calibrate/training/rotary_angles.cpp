// One angle for each position and pair of numbers.
//
// SPDX-License-Identifier: MIT
#include "calibrate/training/rotary_angles.h"

#include <cmath>

#include "base/bug.h"

namespace plumbline {

std::vector<float> rotary_angles(std::int64_t tokens, std::int64_t size, double base) {
  PLUMBLINE_CHECK(size >= 2 && size % 2 == 0, size);
  const std::int64_t half = size / 2;
  std::vector<float> angles(tokens * size);
  for (std::int64_t i = 0; i < half; ++i) {
    const double turn = std::pow(base, -2 * static_cast<double>(i) / static_cast<double>(size));
    for (std::int64_t t = 0; t < tokens; ++t) {
      const double angle = static_cast<double>(t) * turn;
      angles[t * size + i] = static_cast<float>(std::cos(angle));
      angles[t * size + half + i] = static_cast<float>(std::sin(angle));
    }
  }
  return angles;
}

}  // namespace plumbline
