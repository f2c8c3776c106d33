// The event engine.
//
// SPDX-License-Identifier: MIT
#include "sim/engine/engine.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/text_source.h"

namespace plumbline {
namespace {

TEST_CASE("actions due at one instant run in the order they were scheduled") {
  Engine<int> engine;
  for (int i = 0; i < 100; ++i) engine.schedule(SimTime(Duration(i % 3)), i);
  std::vector<int> seen;
  engine.run([&](int i) { seen.push_back(i); });
  for (std::size_t i = 1; i < seen.size(); ++i) {
    CHECK(std::pair(seen[i - 1] % 3, seen[i - 1]) < std::pair(seen[i] % 3, seen[i]));
  }
}

TEST_CASE("random actions come out sorted, also those scheduled under way") {
  Engine<std::int64_t> engine;
  test::Dice dice(5);
  for (int i = 0; i < 500; ++i) {
    const std::int64_t at = dice.roll(0, 1000);
    engine.schedule(SimTime(Duration(at)), at);
  }
  std::int64_t last = 0;
  int seen = 0;
  engine.run([&](std::int64_t at) {
    CHECK(engine.now() == SimTime(Duration(at)));
    CHECK(at >= last);
    last = at;
    if (++seen <= 500 && at < 900) {
      const std::int64_t next = at + dice.roll(0, 50);
      engine.schedule(SimTime(Duration(next)), next);
    }
  });
  CHECK(seen > 600);
}

}  // namespace
}  // namespace plumbline
