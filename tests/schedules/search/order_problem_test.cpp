// Times and memory of given orders, by hand.
//
// SPDX-License-Identifier: MIT
#include "schedules/search/order_problem.h"

#include <doctest/doctest.h>

#include "schedules/generators/chunk_orders.h"
#include "schedules/search/order_bound.h"

namespace plumbline::test {
namespace {

/// `devices` equal stages with F 1, I 1, W 1 and free links.
OrderProblem equal_problem(std::uint32_t devices, std::uint32_t micro_batches, std::int64_t room) {
  OrderProblem problem;
  problem.devices = devices;
  problem.micro_batches = micro_batches;
  problem.split = true;
  for (std::uint32_t s = 0; s < devices; ++s) problem.stages.push_back({s, {1, 1, 1}, 0, 0});
  const std::vector<std::int64_t> none(devices, 0);
  problem.limits.push_back({std::vector<std::int64_t>(devices, room),
                            std::vector<std::int64_t>(devices, 1), none, none});
  return problem;
}

TEST_CASE("the time of zb-h1 is that of its closed form, which no order beats in its memory") {
  for (std::uint32_t p = 2; p <= 6; ++p) {
    const std::uint32_t m = 3 * p;
    const OrderProblem problem = equal_problem(p, m, p);
    const auto orders = device_orders(problem, interleaved_zero_bubble({p, 1, m}));
    REQUIRE(orders);
    const auto times = times_of(problem, *orders);
    REQUIRE(times);
    CHECK(times->length == 3 * m + p - 1);
    CHECK(has_room(problem, *orders));
    CHECK(order_bound(problem).time == times->length);
    CHECK_FALSE(has_room(equal_problem(p, m, p - 1), *orders));
    CHECK(op_lists(problem, *orders) == interleaved_zero_bubble({p, 1, m}));
  }
}

TEST_CASE("orders that hang or miss an op have no time") {
  const OrderProblem problem = equal_problem(2, 1, 1);
  const auto id = [&](OrderKind kind, std::uint32_t s) { return problem.id(kind, s, 0); };
  constexpr auto F = OrderKind::forward;
  constexpr auto B = OrderKind::backward;
  constexpr auto W = OrderKind::weight;
  const DeviceOrders right = {{id(F, 0), id(B, 0), id(W, 0)}, {id(F, 1), id(B, 1), id(W, 1)}};
  CHECK(times_of(problem, right)->length == 5);
  CHECK_FALSE(times_of(problem, {{id(B, 0), id(F, 0), id(W, 0)}, right[1]}));
  CHECK_FALSE(times_of(problem, {{id(F, 0), id(B, 0)}, right[1]}));
}

TEST_CASE("a device without room for one micro-batch is named with what it lacks") {
  OrderProblem problem = equal_problem(3, 4, 1);
  CHECK_FALSE(lack_of_room(problem));
  problem.limits.front().room[1] = 10;
  problem.limits.front().forward[1] = 7;
  problem.limits.front().backward[1] = 2;
  problem.limits.front().during[1] = 4;
  const auto lack = lack_of_room(problem);
  REQUIRE(lack);
  CHECK(lack->device == 1);
  CHECK(lack->needs == 13);
  CHECK(lack->lacks == 3);
}

}  // namespace
}  // namespace plumbline::test
