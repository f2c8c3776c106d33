// The search beside all orders that there are, where these are few.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <array>
#include <utility>
#include <vector>

#include "schedules/search/order_bound.h"
#include "schedules/search/order_search.h"
#include "tests/schedules/search/random_problem.h"

namespace plumbline::test {
namespace {

using List = std::vector<std::uint32_t>;

/// All lists of a device with one stage, micro-batches in turn within each kind.
void add_lists(const OrderProblem& problem, std::uint32_t stage, std::array<std::uint32_t, 3> done,
               List& list, std::vector<List>& all) {
  const std::uint32_t m = problem.micro_batches;
  if (list.size() == problem.kinds() * m) return all.push_back(list);
  for (std::size_t kind = 0; kind < problem.kinds(); ++kind) {
    const std::uint32_t before = kind == 0 ? m : done[kind - 1];
    if (done[kind] == before) continue;
    list.push_back(problem.id(static_cast<OrderKind>(kind), stage, done[kind]));
    ++done[kind];
    add_lists(problem, stage, done, list, all);
    --done[kind];
    list.pop_back();
  }
}

/// The least makespan (or longest span) of all orders with room, by trying each.
OrderTime optimum(const OrderProblem& problem) {
  std::vector<std::vector<List>> lists(problem.devices);
  for (std::uint32_t d = 0; d < problem.devices; ++d) {
    List list;
    add_lists(problem, d, {}, list, lists[d]);
    std::erase_if(lists[d], [&](const List& one) {
      DeviceOrders alone(problem.devices);
      alone[d] = one;
      return !has_room(problem, alone);
    });
  }
  OrderTime best = 0;
  std::vector<std::size_t> at(problem.devices, 0);
  for (bool more = true; more;) {
    DeviceOrders orders;
    for (std::uint32_t d = 0; d < problem.devices; ++d) orders.push_back(lists[d][at[d]]);
    const auto times = times_of(problem, orders);
    if (times && (best == 0 || times->length < best)) {
      CHECK(times->length == length_of(problem, orders, *times));
      best = times->length;
    }
    more = false;
    for (std::uint32_t d = 0; d < problem.devices && !more; ++d) {
      more = ++at[d] < lists[d].size();
      if (!more) at[d] = 0;
    }
  }
  return best;
}

/// The problem with micro-batches that are one to four times as long as its own.
OrderProblem with_unlike_lengths(OrderProblem problem, std::mt19937& random) {
  std::vector<OrderTime> own(problem.ops());
  std::vector<OrderTime> lengths;
  for (std::uint32_t m = 0; m < problem.micro_batches; ++m)
    lengths.push_back(1 + static_cast<OrderTime>(random() % 4));
  for (std::uint32_t op = 0; op < own.size(); ++op) {
    own[op] = lengths[problem.micro_batch_of(op)] *
              problem.time(problem.kind_of(op), problem.stage_of(op), 0);
  }
  problem.own_time = std::move(own);
  return problem;
}

TEST_CASE("the search finds the optimum of small questions, and no bound is above it") {
  std::mt19937 random(7);
  int tried = 0;
  int equal = 0;
  for (const ProblemShape& shape : {ProblemShape{2, 1, 3, true}, ProblemShape{2, 1, 4, false},
                                    ProblemShape{3, 1, 2, true}, ProblemShape{3, 1, 3, false}}) {
    for (int i = 0; i < 40; ++i) {
      OrderProblem problem = random_problem(shape, random);
      if (i >= 25) problem = without_flush(std::move(problem), random);
      if (i % 4 == 3) problem = with_unlike_lengths(std::move(problem), random);
      const OrderTime best = optimum(problem);
      OrderSearchOptions options;
      options.effort = 100'000;
      const FoundOrder found = search_order(problem, options);
      CAPTURE(shape.devices);
      CAPTURE(shape.micro_batches);
      CAPTURE(i);
      CHECK(order_bound(problem).time <= best);
      CHECK(found.length >= best);
      CHECK(static_cast<double>(found.length) <= 1.01 * static_cast<double>(best));
      ++tried;
      equal += found.length == best ? 1 : 0;
    }
  }
  CHECK(equal >= tried * 95 / 100);
}

}  // namespace
}  // namespace plumbline::test
