// The chance that a place holds no expert of a token. It is hypergeometric, over the chosen groups
// and over the experts in them.
//
// SPDX-License-Identifier: MIT
#include "models/import/expert_routing.h"

#include <algorithm>
#include <cmath>

namespace plumbline {
namespace {

/// Stirling's approximation, for large n.
double log_factorial(std::int64_t n) {
  const auto x = static_cast<double>(n);
  return n < 2 ? 0 : (x + 0.5) * std::log(x) - x + 0.918938533204672742 + 1 / (12 * x);
}

double log_binomial(std::int64_t n, std::int64_t k) {
  constexpr std::int64_t few = 10'000;
  if (std::min(k, n - k) > few) return log_factorial(n) - log_factorial(k) - log_factorial(n - k);
  double log = 0;
  for (std::int64_t i = 0; i < std::min(k, n - k); ++i)
    log += std::log(static_cast<double>(n - i) / static_cast<double>(i + 1));
  return log;
}

/// The chance that `drawn` different items of `all` include exactly `hits` of the `special` ones.
double chance(std::int64_t all, std::int64_t special, std::int64_t drawn, std::int64_t hits) {
  if (hits > special || hits > drawn || drawn - hits > all - special) return 0;
  return std::exp(log_binomial(special, hits) + log_binomial(all - special, drawn - hits) -
                  log_binomial(all, drawn));
}

}  // namespace

bool nests(const ExpertRouting& routing, std::int64_t places) {
  return std::max(places, routing.groups) % std::min(places, routing.groups) == 0;
}

double mean_places(const ExpertRouting& routing, std::int64_t places) {
  const bool counts = nests(routing, places);
  const std::int64_t groups = counts ? routing.groups : 1;
  const std::int64_t chosen = counts ? routing.groups_per_token : 1;
  const std::int64_t in_group = routing.experts / groups;
  const std::int64_t in_place = routing.experts / places;
  const std::int64_t groups_in_place = std::max<std::int64_t>(1, in_place / in_group);
  const std::int64_t shared = std::min(in_place, in_group);  // experts of a group in a place
  const std::int64_t candidates = chosen * in_group;
  double left_out = 0;
  for (std::int64_t i = 0; i <= std::min(groups_in_place, chosen); ++i) {
    left_out += chance(groups, groups_in_place, chosen, i) *
                chance(candidates, i * shared, routing.per_token, 0);
  }
  return static_cast<double>(places) * (1 - left_out);
}

}  // namespace plumbline
