// Paths: which level they cross and whose cards they use.
// SPDX-License-Identifier: MIT
#include "models/cluster.h"

#include <doctest/doctest.h>

namespace plumbline {
namespace {

TEST_CASE(
    "a path bears the link of the outermost level that it crosses, and the cards of its groups") {
  Cluster cluster;
  const Link inner{Duration{1}, BytesPerSecond{100}};
  const Link middle{Duration{2}, BytesPerSecond{10}};
  const Link outer{Duration{3}, std::nullopt};
  cluster.levels = {{"server", 2, inner}, {"rack", 3, middle}, {"room", 2, outer}};
  CHECK(cluster.device_count() == 12);
  const Path inside = cluster.path({0}, {1});
  CHECK(inside.link == inner);
  CHECK(!inside.out);
  const Path across = cluster.path({1}, {4});  // servers 0 and 2 of rack 0
  CHECK(across.link == middle);
  CHECK(across.out == Card{1, 0, true});
  CHECK(across.in == Card{1, 2, false});
  const Path far = cluster.path({11}, {0});  // racks 1 and 0
  CHECK(far.link == outer);
  CHECK(far.out == Card{2, 1, true});
  CHECK(far.in == Card{2, 0, false});
  cluster.levels[2].own_cards = true;  // of that level alone
  const Path alone = cluster.path({11}, {0});
  CHECK(alone.link == outer);
  CHECK(!alone.out);
  CHECK(!alone.in);
  CHECK(cluster.path({1}, {4}).out == Card{1, 0, true});
}

}  // namespace
}  // namespace plumbline
