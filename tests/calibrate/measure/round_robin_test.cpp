// Turns: never more at work than may be, and each in its turn.
//
// SPDX-License-Identifier: MIT
#include "calibrate/measure/round_robin.h"

#include <doctest/doctest.h>

#include <thread>
#include <vector>

namespace plumbline {
namespace {

/// How many threads worked at once at most, where so many of them may.
int max_at_work(std::uint32_t threads, std::uint32_t at_once) {
  RoundRobin turns;
  turns.restart(at_once);
  std::atomic<int> at_work{0};
  std::atomic<int> max{0};
  std::atomic<int> total{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> all;
  all.reserve(threads);
  for (std::uint32_t t = 0; t < threads; ++t) {
    all.emplace_back([&] {
      while (turns.begin(0, stop)) {
        const int now_at_work = ++at_work;
        int before = max;
        while (before < now_at_work && !max.compare_exchange_weak(before, now_at_work)) {
        }
        std::this_thread::yield();
        --at_work;
        turns.end();
        if (++total >= 3000) stop = true;
        if (stop) break;
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  CHECK(total >= 3000);
  return max;
}

TEST_CASE("never more work than may, and no more than there are") {
  CHECK(max_at_work(3, 1) == 1);
  CHECK(max_at_work(4, 2) <= 2);
  CHECK(max_at_work(2, 8) <= 2);
}

TEST_CASE("who has waited comes before who has just worked") {
  RoundRobin turns;
  turns.restart(1);
  std::atomic<bool> stop{false};
  std::vector<int> order;
  REQUIRE(turns.begin(0, stop));
  std::atomic<bool> asks{false};
  std::thread other([&] {
    asks = true;
    if (!turns.begin(0, stop)) return;
    order.push_back(2);
    turns.end();
  });
  while (!asks) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it has its number by now
  order.push_back(1);
  turns.end();
  REQUIRE(turns.begin(0, stop));
  order.push_back(3);
  turns.end();
  other.join();
  CHECK(order == std::vector<int>{1, 2, 3});
}

TEST_CASE("a wait for a turn ends with the walk") {
  RoundRobin turns;
  turns.restart(1);
  std::atomic<bool> stop{false};
  REQUIRE(turns.begin(0, stop));
  std::thread other([&] { CHECK_FALSE(turns.begin(0, stop)); });
  stop = true;
  other.join();
  turns.restart(2);
  stop = false;
  CHECK(turns.begin(0, stop));
  CHECK(turns.begin(0, stop));
}

}  // namespace
}  // namespace plumbline
