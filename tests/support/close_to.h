// Numbers that are nearly the same, however small.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>

namespace plumbline::test {

/// Equal within the share `epsilon` of the larger number. A bare doctest::Approx also allows that
/// share of 1, which is more than most times in seconds.
inline doctest::Approx close_to(double value, double epsilon = 1e-5) {
  return doctest::Approx(value).scale(1e-15).epsilon(epsilon);
}

}  // namespace plumbline::test
