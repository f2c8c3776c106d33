// Laws of found orders.
//
// SPDX-License-Identifier: MIT
#include "schedules/search/order_search.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <utility>

#include "schedules/search/order_bound.h"
#include "tests/schedules/search/random_problem.h"

namespace plumbline::test {
namespace {

TEST_CASE("found orders run, keep all limits, and take their time; no bound is above it") {
  std::mt19937 random(3);
  for (int i = 0; i < 60; ++i) {
    const ProblemShape shape{1 + static_cast<std::uint32_t>(random() % 5),
                             1 + static_cast<std::uint32_t>(random() % 2),
                             1 + static_cast<std::uint32_t>(random() % 9), random() % 2 == 0};
    OrderProblem problem = random_problem(shape, random);
    if (i % 3 == 0) {  // a second limit, in bytes
      OrderLimit bytes = problem.limits.front();
      for (auto& one : bytes.forward) one = 3 + static_cast<std::int64_t>(random() % 5);
      for (auto& one : bytes.backward) one = static_cast<std::int64_t>(random() % 3);
      for (auto& one : bytes.during) one = static_cast<std::int64_t>(random() % 2);
      for (auto& one : bytes.room) one = 25;
      problem.limits.push_back(bytes);
    }
    if (i % 2 == 1) problem = without_flush(std::move(problem), random);
    CAPTURE(i);
    if (lack_of_room(problem)) continue;
    OrderSearchOptions options;
    options.effort = 20'000;
    const FoundOrder found = search_order(problem, options);
    const auto times = times_of(problem, found.orders);
    REQUIRE(times);
    CHECK(times->length == found.length);
    CHECK(length_of(problem, found.orders, *times) == found.length);
    CHECK(has_room(problem, found.orders));
    CHECK(order_bound(problem).time <= found.length);
  }
}

TEST_CASE("the same question has the same answer, and more effort no worse one") {
  std::mt19937 random(11);
  const OrderProblem problem = random_problem({6, 2, 12, true}, random);
  OrderTime last = 0;
  for (const std::int64_t effort : {10'000, 100'000, 1'000'000}) {
    OrderSearchOptions options;
    options.effort = effort;
    const FoundOrder once = search_order(problem, options);
    CHECK(search_order(problem, options).orders == once.orders);
    if (last > 0) CHECK(once.length <= last);
    last = once.length;
  }
}

TEST_CASE("a known order that is better is kept") {
  std::mt19937 random(5);
  const OrderProblem problem = random_problem({4, 2, 8, true}, random);
  OrderSearchOptions options;
  options.effort = 1'000'000;
  const FoundOrder good = search_order(problem, options);
  options.known = {good.orders};
  options.effort = 1;
  CHECK(search_order(problem, options).length <= good.length);
}

}  // namespace
}  // namespace plumbline::test
