// Random numbers from a seed and a place, without state: the same on every machine.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace plumbline {

/// A well-mixed number for each (seed, place) (splitmix64's finaliser; Steele, Lea and Flood 2014).
std::uint64_t random_bits(std::uint64_t seed, std::uint64_t place);

/// Uniform in [0, 1).
double random_uniform(std::uint64_t seed, std::uint64_t place);

/// Normal with mean 0 and deviation 1 (Box and Muller 1958).
double random_normal(std::uint64_t seed, std::uint64_t place);

}  // namespace plumbline
