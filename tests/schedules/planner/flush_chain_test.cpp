// The bound of an iteration with a flush, against closed forms and the engine.
//
// SPDX-License-Identifier: MIT
#include "schedules/planner/flush_chain.h"

#include <doctest/doctest.h>

#include <vector>

#include "tests/support/stages.h"

namespace plumbline::test {
namespace {

/// A pipeline of these stages, each behind such a link.
FlushChain chain_of(const std::vector<FlushStage>& stages, const FlushLink& link = {}) {
  FlushChain chain;
  for (std::size_t s = stages.size(); s-- > 0;)
    chain = with_front(s + 1 < stages.size() ? across(chain, link) : chain, stages[s]);
  return chain;
}

/// As 1F1B has them: stage s of p has p - s in flight.
std::vector<FlushStage> equal_stages(std::uint32_t p, std::uint32_t m) {
  std::vector<FlushStage> stages;
  stages.reserve(p);
  for (std::uint32_t s = 0; s < p; ++s)
    stages.push_back({.forward = 10,
                      .backward = 20,
                      .reduce = 0,
                      .update = 0,
                      .own = m,
                      .window = std::min(m, p - s)});
  return stages;
}

TEST_CASE("equal stages: filling and emptying take one micro-batch of every other stage") {
  for (const std::uint32_t p : {1U, 2U, 5U}) {
    for (const std::uint32_t m : {1U, 2U, 3U, 5U, 12U}) {
      CAPTURE(p);
      CAPTURE(m);
      const FlushChain chain = chain_of(equal_stages(p, m));
      CHECK(chain.round_trip == p * 30);
      CHECK(chain.span == (m + p - 1) * 30);
      CHECK(chain.end() == chain.span);
    }
  }
}

TEST_CASE("one micro-batch in flight is one round trip after the other") {
  std::vector<FlushStage> stages = equal_stages(3, 4);
  for (FlushStage& stage : stages) stage.window = 1;
  CHECK(chain_of(stages).span == 4 * 3 * 30);
  CHECK(chain_of(stages, {.transfer = 7, .load = 4 * 7}).span == 4 * (3 * 30 + 4 * 7));
}

TEST_CASE(
    "a long first stage waits at the start and at the end, as far as nothing fills the time") {
  const FlushStage last{
      .forward = 10, .backward = 20, .reduce = 0, .update = 0, .own = 6, .window = 1};
  // The round trip behind it takes 30. Four forwards of 25 after the first one fill that, and so do
  // four backwards of 50; one forward or none does not.
  FlushStage first{.forward = 25, .backward = 50, .reduce = 0, .update = 0, .own = 6, .window = 5};
  CHECK(idle(first, 30) == 0);
  first.window = 2;
  CHECK(idle(first, 30) == 5);
  first.window = 1;
  CHECK(idle(first, 30) == 60);
  CHECK(chain_of({first, last}).span == 6 * (25 + 50 + 30));  // round trips
  first.window = 2;
  CHECK(chain_of({first, last}).span == 6 * 75 + 5);
  first.own = first.window = 1;
  CHECK(idle(first, 30) == 30);  // a single window: one wait
}

TEST_CASE("a slow link is busy from the first output on, and the last one makes its round trip") {
  std::vector<FlushStage> stages = equal_stages(2, 6);
  stages[0].window = 6;  // F 10, outputs 6 x 50, F and B 30, back 50, B 20
  CHECK(chain_of(stages, {.transfer = 50, .load = 300}).span == 10 + 300 + 30 + 50 + 20);
  // GPipe: nothing goes back before the last forward.
  stages[1].window = 6;
  CHECK(chain_of(stages, {.transfer = 50, .load = 300}).span == 10 + 300 + 30 + 300 + 20);
  CHECK(chain_of(stages, {.transfer = 50, .load = 300}).in_two);
  CHECK(chain_of(stages, {.transfer = 1, .load = 6}).span == 7 * 30 + 2);
}

TEST_CASE("the all-reduce of any stage may be what ends last, and the longest update follows") {
  std::vector<FlushStage> stages = equal_stages(2, 3);
  stages[1].reduce = 5;  // done long before the first stage is
  CHECK(chain_of(stages).end() == 4 * 30);
  stages[1].reduce = 100;
  CHECK(chain_of(stages).end() == 10 + 3 * 30 + 100);
  CHECK(chain_of(stages, {.transfer = 4, .load = 3 * 4}).end() == 10 + 4 + 3 * 30 + 100);
  stages[0].reduce = 1000;
  CHECK(chain_of(stages).end() == 4 * 30 + 1000);
  // Updates wait for all of that, and begin together.
  stages[0].update = 7;
  stages[1].update = 60;
  CHECK(chain_of(stages).end() == 4 * 30 + 1000 + 60);
}

}  // namespace
}  // namespace plumbline::test
