// Places of a token's experts: the formula against every choice that there is.
//
// SPDX-License-Identifier: MIT
#include "models/import/expert_routing.h"

#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <set>

#include "tests/support/close_to.h"

namespace plumbline::test {
namespace {

/// Over all choices of groups, and of experts in them.
double counted_places(const ExpertRouting& routing, std::int64_t places) {
  const std::int64_t in_group = routing.experts / routing.groups;
  const std::int64_t in_place = routing.experts / places;
  double sum = 0;
  double choices = 0;
  for (std::uint32_t groups = 0; groups < (1U << routing.groups); ++groups) {
    if (std::popcount(groups) != routing.groups_per_token) continue;
    for (std::uint32_t chosen = 0; chosen < (1U << routing.experts); ++chosen) {
      if (std::popcount(chosen) != routing.per_token) continue;
      std::set<std::int64_t> hit;
      bool allowed = true;
      for (std::int64_t expert = 0; expert < routing.experts; ++expert) {
        if ((chosen >> expert & 1U) == 0) continue;
        allowed = allowed && (groups >> (expert / in_group) & 1U) != 0;
        hit.insert(expert / in_place);
      }
      if (!allowed) continue;
      sum += static_cast<double>(hit.size());
      ++choices;
    }
  }
  return sum / choices;
}

TEST_CASE("the mean number of places is that over all choices of experts") {
  for (const ExpertRouting& routing :
       {ExpertRouting{8, 1}, ExpertRouting{8, 2}, ExpertRouting{8, 3}, ExpertRouting{8, 8},
        ExpertRouting{8, 2, 4, 2}, ExpertRouting{8, 3, 4, 2}, ExpertRouting{8, 4, 2, 1},
        ExpertRouting{8, 5, 4, 3}, ExpertRouting{12, 3, 4, 2}, ExpertRouting{12, 4, 6, 3},
        ExpertRouting{12, 2, 2, 1}}) {
    for (std::int64_t places = 1; places <= routing.experts; ++places) {
      if (routing.experts % places != 0 || !nests(routing, places)) continue;
      CAPTURE(routing.experts);
      CAPTURE(routing.per_token);
      CAPTURE(routing.groups);
      CAPTURE(routing.groups_per_token);
      CAPTURE(places);
      CHECK(mean_places(routing, places) == close_to(counted_places(routing, places), 1e-12));
    }
  }
}

TEST_CASE("places that hold parts of several groups do as if there were none") {
  const ExpertRouting limited{12, 3, 4, 2};  // groups of 3
  CHECK(nests(limited, 2));
  CHECK(nests(limited, 12));
  CHECK_FALSE(nests(limited, 6));
  CHECK_FALSE(nests(limited, 3));
  CHECK(mean_places(limited, 6) == close_to(mean_places({12, 3}, 6)));
}

TEST_CASE(
    "DeepSeek-V3: at most 4 of 8 servers, on average 3.6, where 8 experts at random are in 5.3") {
  CHECK(mean_places({256, 8, 8, 4}, 8) == close_to(3.6290109244257005, 1e-12));
  CHECK(mean_places({256, 8}, 8) == close_to(5.294652000382479, 1e-12));
  CHECK(mean_places({256, 8, 8, 4}, 1) == close_to(1));
}

}  // namespace
}  // namespace plumbline::test
