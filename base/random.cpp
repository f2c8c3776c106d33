// Counter-based random numbers.
//
// SPDX-License-Identifier: MIT
#include "base/random.h"

#include <cmath>
#include <numbers>

namespace plumbline {
namespace {

std::uint64_t mixed(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31U);
}

}  // namespace

std::uint64_t random_bits(std::uint64_t seed, std::uint64_t place) {
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15U;
  return mixed(mixed(seed + golden) ^ (place + 1) * golden);
}

double random_uniform(std::uint64_t seed, std::uint64_t place) {
  return static_cast<double>(random_bits(seed, place) >> 11U) * 0x1p-53;
}

double random_normal(std::uint64_t seed, std::uint64_t place) {
  const double radius = std::sqrt(-2 * std::log(1 - random_uniform(seed, 2 * place)));
  return radius * std::cos(2 * std::numbers::pi * random_uniform(seed, 2 * place + 1));
}

}  // namespace plumbline
