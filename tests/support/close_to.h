// Numbers that are nearly the same, however small.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>

namespace plumbline::test {

/// Within the share `epsilon` of the larger one. A bare doctest::Approx allows so much of 1
/// besides, which is more than most times in seconds.
inline doctest::Approx close_to(double value, double epsilon = 1e-5) {
  return doctest::Approx(value).scale(1e-15).epsilon(epsilon);
}

}  // namespace plumbline::test
