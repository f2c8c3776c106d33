// The synthetic backend: ops that take exactly the time that the model says, so the truth is known.
// SPDX-License-Identifier: MIT
#pragma once

#include "calibrate/backend.h"

namespace plumbline {

/// How far ops are from their predicted times. Every op draws for itself, from the seed, the
/// iteration and its place in the run: the same options give the same times.
struct SyntheticOptions {
  double spread = 0;  ///< Relative standard deviation of a log-normal factor of mean 1.
  double straggler_probability = 0;
  double straggler_factor = 2;  ///< How many times longer a straggling op takes.
  std::uint64_t seed = 1;
};

/// The factor by which an op's time differs in one iteration; 1 without spread and stragglers.
double synthetic_factor(const SyntheticOptions& options, std::uint32_t iteration,
                        std::uint32_t node);

/// Its workers sleep until shortly before the end of an op and then spin, so that 8 devices run on
/// 2 cores. Time beyond that end counts as lost.
std::unique_ptr<Backend> synthetic_backend(const SyntheticOptions& options);

}  // namespace plumbline
