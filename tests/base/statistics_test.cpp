// Order statistics of small samples, by hand.
//
// SPDX-License-Identifier: MIT
#include "base/statistics.h"

#include <doctest/doctest.h>

#include <numeric>

namespace plumbline::test {
namespace {

TEST_CASE("the nearest rank is a sample that the share does not exceed") {
  const std::vector<double> sorted = {1, 2, 4, 8};
  CHECK(nearest_rank(sorted, 0) == 1);
  CHECK(nearest_rank(sorted, 0.25) == 1);
  CHECK(nearest_rank(sorted, 0.26) == 2);
  CHECK(nearest_rank(sorted, 0.5) == 2);
  CHECK(nearest_rank(sorted, 1) == 8);
}

TEST_CASE("quantiles interpolate between order statistics") {
  const std::vector<double> sorted = {1, 2, 4, 8};
  CHECK(quantile(sorted, 0) == 1);
  CHECK(quantile(sorted, 1) == 8);
  CHECK(quantile(sorted, 0.5) == 3);
  CHECK(quantile(sorted, 0.25) == 1.75);
  CHECK(quantile(sorted, 0.75) == 5);
  CHECK(quantile({7}, 0.3) == 7);
  CHECK(quantile({7}, 1) == 7);
}

TEST_CASE("one sample is its own mean, median and quartiles") {
  const Statistics s = statistics_of({2.5});
  CHECK(s.samples == 1);
  for (const double value : {s.mean, s.median, s.q1, s.q3, s.min, s.max}) CHECK(value == 2.5);
  CHECK(s.relative_spread() == 0);
}

TEST_CASE("samples may come in any order") {
  const Statistics s = statistics_of({8, 1, 4, 2});
  CHECK(s.samples == 4);
  CHECK(s.mean == 3.75);
  CHECK(s.median == 3);
  CHECK(s.q1 == 1.75);
  CHECK(s.q3 == 5);
  CHECK(s.min == 1);
  CHECK(s.max == 8);
  CHECK(s.relative_spread() == 3.25 / 3);
}

TEST_CASE("the mean leaves out the lowest and the highest tenth") {
  std::vector<double> samples(9);
  std::iota(samples.begin(), samples.end(), 1.0);
  CHECK(statistics_of(samples).mean == 5);  // of nine a tenth is none
  samples.back() = 900;
  CHECK(statistics_of(samples).mean == (36 + 900) / 9.0);
  samples.push_back(-1'000);  // of ten it is one
  CHECK(statistics_of(samples).mean == 36 / 8.0);
  CHECK(statistics_of(samples).min == -1'000);
  CHECK(statistics_of(samples).max == 900);
  std::vector<double> many(20, 3.0);
  many[0] = many[1] = 1e9;
  many[18] = many[19] = -1e9;
  CHECK(statistics_of(many).mean == 3);
}

TEST_CASE("samples of nothing have no spread") {
  CHECK(statistics_of({0, 0, 0}).relative_spread() == 0);
}

}  // namespace
}  // namespace plumbline::test
