// Even and balanced cuts, the latter against all cuts.
//
// SPDX-License-Identifier: MIT
#include "schedules/stages/partition.h"

#include <doctest/doctest.h>

#include <numeric>
#include <optional>
#include <tuple>

#include "tests/support/text_source.h"

namespace plumbline {
namespace {

/// By trying every cut: least maximum, then least sum of squares, then the lexicographically
/// largest counts.
std::vector<std::uint32_t> best_of_all_cuts(const std::vector<std::vector<Duration>>& times,
                                            const std::vector<std::uint32_t>& kinds) {
  const std::size_t layers = times.front().size();
  const std::size_t stages = kinds.size();
  std::optional<std::tuple<std::int64_t, std::int64_t, std::vector<std::int64_t>>> best;
  std::vector<std::uint32_t> found, counts;
  const auto search = [&](const auto& self, std::size_t first) -> void {
    if (counts.size() + 1 == stages) {
      counts.push_back(static_cast<std::uint32_t>(layers - first));
      std::int64_t max = 0, squares = 0;
      std::vector<std::int64_t> negative;
      std::size_t at = 0;
      for (std::size_t s = 0; s < stages; ++s) {
        const std::uint32_t count = counts[s];
        std::int64_t sum = 0;
        for (std::uint32_t i = 0; i < count; ++i) sum += times[kinds[s]][at++].count();
        max = std::max(max, sum);
        squares += sum * sum;
        negative.push_back(-std::int64_t{count});
      }
      const auto key = std::tuple(max, squares, negative);
      if (!best || key < *best) {
        best = key;
        found = counts;
      }
      counts.pop_back();
      return;
    }
    for (std::size_t end = first + 1; end + (stages - counts.size() - 1) <= layers; ++end) {
      counts.push_back(static_cast<std::uint32_t>(end - first));
      self(self, end);
      counts.pop_back();
    }
  };
  search(search, 0);
  return found;
}

TEST_CASE("the first stages of an even partition get one layer more") {
  CHECK(even_counts(10, 4) == std::vector<std::uint32_t>{3, 3, 2, 2});
  CHECK(even_counts(4, 4) == std::vector<std::uint32_t>{1, 1, 1, 1});
}

TEST_CASE("the balanced partition equals the best of all cuts, ties included") {
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    test::Dice dice(seed);
    std::vector<Duration> times(static_cast<std::size_t>(dice.roll(1, 10)));
    const std::int64_t max = dice.roll(0, 1) == 1 ? 3 : 40;
    for (Duration& time : times) time = Duration{dice.roll(0, max)};
    const auto stages =
        static_cast<std::uint32_t>(dice.roll(1, static_cast<std::int64_t>(times.size())));
    CAPTURE(seed);
    CHECK(balanced_counts(times, stages) ==
          best_of_all_cuts({times}, std::vector<std::uint32_t>(stages, 0)));
  }
}

TEST_CASE("the balanced partition of unlike stages equals the best of all cuts, ties included") {
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    test::Dice dice(seed);
    const auto layers = static_cast<std::size_t>(dice.roll(1, 9));
    std::vector<std::vector<Duration>> times(static_cast<std::size_t>(dice.roll(1, 3)));
    for (std::vector<Duration>& of_kind : times) {
      of_kind.resize(layers);
      for (Duration& time : of_kind) time = Duration{dice.roll(0, seed % 2 == 0 ? 3 : 40)};
    }
    std::vector<std::uint32_t> kinds(
        static_cast<std::size_t>(dice.roll(1, static_cast<std::int64_t>(layers))));
    for (std::uint32_t& kind : kinds)
      kind = static_cast<std::uint32_t>(dice.roll(0, static_cast<std::int64_t>(times.size()) - 1));
    CAPTURE(seed);
    CHECK(balanced_counts(times, kinds) == best_of_all_cuts(times, kinds));
  }
}

TEST_CASE("neighbouring stages on one device form one position") {
  const Partition partition =
      make_partition({{0}, {1}, {2}, {3}}, {1, 1, 1, 1}, {{{5}}, {{5}}, {{2}}, {{7}}});
  const auto found = positions(partition);
  REQUIRE(found.size() == 3);
  CHECK(found[0].stages == 2);
  CHECK(found[1].first_stage == 2);
  CHECK(devices_in_use(partition) == std::vector<DeviceId>{{2}, {5}, {7}});
}

}  // namespace
}  // namespace plumbline
